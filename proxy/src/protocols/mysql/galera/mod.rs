//! A Galera cluster: one server takes writes, and the others serve reads.
//!
//! Three questions are put to each server again and again, on connections of their own. The status says
//! whether it serves; a read that waits for the other servers proves it; locks by name tell of other proxies.
//! A server that was away is not asked for anything before it has proved it: one that was frozen and evicted
//! tells for some seconds that all is well.
//!
//! Invariant: one server is the writer at a time, for all workers. It stays that until it fails.

mod again;
mod answer;
#[cfg(test)]
mod model;
mod nodes;
mod others;
mod planned_move;
mod reading;
mod reason;
mod word;

use std::{any::Any, sync::Arc, time::Duration};

use proxima_wire::{
    message::{Class, Outcome},
    mysql::{ErrPacket, Header},
};

pub(super) use self::word::Word;
use self::{
    again::{Again, AgainCounts},
    answer::Answer,
    nodes::Nodes,
    planned_move::LONGEST_HOLD,
    reading::Reading,
    reason::Reason,
};
use super::{
    commands::{self, append_query},
    state::Client,
};
use crate::protocol::{
    Answerer, Failed, Fate, HeldWrites, HoldLimit, Mark, MemberFacts, Monitor, OneWriter, OtherProxies,
    PoolChanges, PoolMembers, PoolOrders, PoolQuestion, PoolRequest, PoolSettings, PoolState, Role,
    RoleStatus, ServerAnswer, Tried,
};

/// Time between two questions to a server for its status.
const STATUS_INTERVAL: Duration = Duration::from_millis(250);
/// Time between two barriers, which bounds the age of what a server shows.
const PROOF_INTERVAL: Duration = Duration::from_millis(100);

/// The most times that servers reject a statement before its client is told.
const MOST_REJECTED: u32 = 3;

/// The tokens of the monitor's answers. No barrier that a read waits for has one of them.
const STATUS: u64 = u64::MAX;
const PROOF: u64 = u64::MAX - 1;
const OTHERS: u64 = u64::MAX - 2;

/// The statement that asks servers for their status. A variable that a server does not know is left out.
const ASK_STATUS: &[u8] =
    b"SHOW GLOBAL STATUS WHERE Variable_name IN ('wsrep_ready', 'wsrep_cluster_status', \
                            'wsrep_local_state', 'wsrep_cluster_state_uuid', 'wsrep_last_committed', \
                            'wsrep_local_recv_queue'); \
                            SHOW GLOBAL VARIABLES WHERE Variable_name IN ('wsrep_node_name', 'read_only', \
                            'wsrep_reject_queries', 'wsrep_desync', 'pxc_maint_mode', 'version')";
/// The statement with which servers wait for the writes that others have acknowledged.
const ASK_PROOF: &[u8] = b"SET SESSION wsrep_sync_wait = 1; SELECT 1";

/// The state of a pool that is a Galera cluster.
pub(super) struct Galera {
    settings: OneWriter,
    changes: PoolChanges,
    orders: Arc<PoolOrders>,
    nodes: Arc<Nodes>,
    reading: Reading,
    again: AgainCounts,
}

impl Galera {
    /// The state of a pool with these settings. What is known of its servers stays when they change, and a
    /// move that is under way goes on.
    pub(super) fn new(settings: &PoolSettings<'_>, writer: &OneWriter) -> Self {
        let shared = settings.shared.clone();
        let nodes = shared.and_then(|shared| shared.downcast::<Nodes>().ok());
        Self {
            settings: writer.clone(),
            changes: settings.changes.clone(),
            orders: Arc::clone(&settings.orders),
            nodes: nodes.unwrap_or_default(),
            reading: Reading::new(writer, settings.count.clone()),
            again: AgainCounts::default(),
        }
    }

    /// Notes a server's answer, or its failure to answer.
    fn note(&self, of: &Answerer<'_>, answer: Answer) {
        self.nodes
            .heard(of, answer, self.orders.of_writer(), &self.settings);
        self.note_news();
    }

    /// Takes what has become of orders and of the servers to those who wait for it.
    fn note_news(&self) {
        if let Some((order, why)) = self.nodes.take_given_up() {
            self.orders.give_up(order, why);
        }
        self.look_for_others();
        if self.nodes.take_news() {
            self.changes.note();
        }
    }

    /// Notes for all reads whether another proxy may write.
    fn look_for_others(&self) {
        if self.settings.is_only_proxy {
            self.reading
                .note_others(self.nodes.look_for_others(&self.settings).may_be());
        }
    }

    /// The answer to a barrier that reads wait for.
    fn barrier_answered(&self, mark: Mark, of: &Answerer<'_>, heard: &ServerAnswer<'_>) {
        match heard {
            ServerAnswer::Reply(reply, _) if !reply.outcome.is_error() => {
                // As behind the monitor's barriers: a process that was frozen may have company since.
                self.look_for_others();
                let since = of.reached.end_wait();
                of.reached.raise_since(mark, since);
            }
            // Its status says what is wrong, and the monitor's barriers when reads may wait for it again.
            _ => {
                of.reached.fail_wait();
                of.noted.doubt();
            }
        }
        if self.reading.take_waiters() {
            self.changes.note();
        }
    }

    /// Does this request wait, if it does, for what a reader lacks?
    fn waits_for_reader(&self, asked: &PoolRequest<'_>) -> bool {
        asked.class == Class::Read && self.nodes.has_reader() && !self.orders.is_held()
    }

    /// The position of the writer; `None`: there is none, or it is not known yet which member it is.
    fn writer(&self, members: &dyn PoolMembers) -> Option<usize> {
        let number = self.nodes.writer();
        if number == 0 {
            return None;
        }
        let is_writer = |member: MemberFacts<'_>| Word(member.noted.get()).number() == number;
        (0..members.count()).find(|&at| members.at(at).is_some_and(is_writer))
    }
}

impl PoolState for Galera {
    fn has_one_writer(&self) -> bool {
        true
    }

    fn may_hold(&self) -> bool {
        true
    }

    /// Everything waits while orders should be over that are not; writes wait while no server takes writes; everything waits while nothing is known of any server; a
    /// read waits for a reader that has what it must see.
    fn holds(&self, asked: &PoolRequest<'_>, members: &dyn PoolMembers) -> bool {
        if self.orders.is_overdue(asked.unix) {
            return true;
        }
        let is_read = asked.class == Class::Read;
        // A read that begins anew while the writer moves may have turned out to write.
        let is_again = asked.request.is_again && self.nodes.is_moving() && !is_for_reads(asked);
        let must_write = !is_read || is_again;
        // Before a look at who the writer is: the next one has rejected nothing.
        let is_doubtful = asked.request.is_again && self.nodes.is_doubtful(asked.since);
        let writer = self.writer(members);
        if writer.is_none() && (must_write || !self.nodes.has_reader()) {
            return true;
        }
        // The writer that has rejected this, or another statement, may serve no longer.
        if is_doubtful && writer.is_some() && !(is_read && self.reading.has_reader(asked, writer, members)) {
            return true;
        }
        // The server that has taken writes until now is asked for nothing.
        if is_read && self.nodes.is_moving() && !self.reading.has_candidate(asked, members) {
            return true;
        }
        is_read && self.reading.waits(asked, writer, members)
    }

    /// All wait for a writer as long. A read that waits for a reader is looked at before, and then goes to
    /// the writer: whether there is one may change in between, so that the first of the times ends no
    /// request.
    fn hold_limit(&self, asked: &PoolRequest<'_>) -> HoldLimit {
        let (time, again) = match self.waits_for_reader(asked) {
            true => (self.settings.wait.max(self.reading.wait()), self.reading.wait()),
            false => (self.settings.wait, self.settings.wait),
        };
        HoldLimit {
            time,
            again,
            ..HoldLimit::DEFAULT
        }
    }

    fn barrier(&self, asked: &PoolRequest<'_>, members: &dyn PoolMembers) -> Option<PoolQuestion> {
        let waits = self.waits_for_reader(asked);
        waits.then(|| self.reading.barrier(asked, self.writer(members), members))?
    }

    fn asks(&self, token: u64, of: &Answerer<'_>, unix: u64, is_first: bool) {
        if token == OTHERS {
            self.nodes.asks_others(of);
        }
        if token == STATUS {
            self.nodes.asks_status(of, unix);
        }
        if token == PROOF {
            // What an earlier connection has proved may have been proved by another server.
            if is_first {
                of.reached.begin_anew();
            }
            self.nodes
                .asks(of, of.reached.mark(self.reading.count().raise()), unix);
        }
    }

    fn answered(&self, token: u64, of: &Answerer<'_>, heard: ServerAnswer<'_>) {
        let answer = match (token, heard) {
            (STATUS, ServerAnswer::Reply(reply, bytes)) if !reply.outcome.is_error() => Answer::read(bytes),
            (PROOF, ServerAnswer::Reply(_, bytes)) if error_code(bytes) == Some(1205) => Answer::Late,
            (PROOF, ServerAnswer::Reply(reply, _)) => Answer::Proof(!reply.outcome.is_error()),
            // A late answer says nothing of this very server.
            (PROOF, ServerAnswer::Failed(_)) => Answer::Proof(false),
            (STATUS, ServerAnswer::Reply(_, bytes)) => Answer::Failed(error_text(bytes)),
            (OTHERS, ServerAnswer::Reply(reply, bytes)) if !reply.outcome.is_error() => {
                Answer::Others(others::read(of.address, bytes))
            }
            (OTHERS, heard) => Answer::Others(OtherProxies::Unknown(match heard {
                ServerAnswer::Reply(_, bytes) => {
                    format!(
                        "{} does not tell whether another proxy uses it: {}",
                        of.address,
                        error_text(bytes)
                    )
                }
                ServerAnswer::Failed(failed) => failed.to_string(),
            })),
            (STATUS, ServerAnswer::Failed(failed)) => Answer::Failed(failed.to_string()),
            (mark, heard) => return self.barrier_answered(Mark::of(mark), of, &heard),
        };
        self.note(of, answer);
        if token == PROOF && self.reading.take_waiters() {
            self.changes.note();
        }
    }

    fn member(&self, asked: &PoolRequest<'_>, members: &dyn PoolMembers) -> Option<usize> {
        let writer = self.writer(members);
        let serves = |&at: &usize| {
            members
                .at(at)
                .is_some_and(|member| Word(member.noted.get()).serves())
        };
        // While the writer moves, the former one is right for what did not wait, as the move has begun just
        // now.
        let writes = |&at: &usize| {
            let member = members.at(at);
            member.is_some_and(|member| Word(member.noted.get()).writes())
        };
        let former = || (0..members.count()).find(writes);
        // Without a writer, the servers themselves say what is wrong.
        let first = || (0..members.count()).find(serves);
        let any = || writer.or_else(former).or_else(first).or(Some(0));
        match asked.class {
            Class::Read => self.reading.reader(asked, writer, members).or_else(any),
            _ => any(),
        }
    }

    fn may_redirect(&self) -> bool {
        true
    }

    /// A read that has turned out to write, or whose server does not serve, goes to the writer. What the
    /// writer has not run, as it takes writes no longer, begins anew, and waits until it is known which
    /// server does.
    fn redirect(
        &self,
        asked: &PoolRequest<'_>,
        reply: &[u8],
        tried: Tried,
        members: &dyn PoolMembers,
    ) -> Option<usize> {
        let is_read = asked.class == Class::Read;
        let why = Again::of(reply, is_read)?;
        // The session has seen the reply as its server has sent it, and knows what it keeps. It has not seen
        // one to the login of a connection that a read waits for.
        let goes_again = Client::of(asked.session).is_some_and(|client| client.goes_again);
        if !(goes_again || is_read && why != Again::Conflict) || is_for_reads(asked) {
            return None;
        }
        let anew = members.count();
        if why == Again::Conflict {
            return (tried.count <= self.settings.conflict_retries).then_some(anew);
        }
        let writer = self.writer(members).filter(|&writer| tried.last != Some(writer));
        if is_read && writer.is_some() {
            return writer;
        }
        if why == Again::Rejected && tried.count < MOST_REJECTED {
            self.nodes.rejects(asked.unix);
            return Some(anew);
        }
        // While the writer moves, a read waits for the next one.
        (is_read && self.nodes.is_moving()).then_some(anew)
    }

    fn sent_again(&self, class: Class, answer: Result<&[u8], Fate>) {
        let why = match answer {
            Ok(reply) => Again::of(reply, class == Class::Read),
            Err(Fate::Unsent) => Some(Again::Unsent),
            Err(_) => Some(Again::Lost),
        };
        if let Some(why) = why {
            self.again.add(why);
        }
    }

    /// A server that cannot be reached serves no longer, and what it has not executed goes to another one.
    fn failed(&self, asked: &PoolRequest<'_>, of: &Answerer<'_>, failed: &Failed<'_>) -> bool {
        // It may have been executed, whatever its client is told.
        if asked.class != Class::Read && failed.fate != Fate::Unsent {
            self.reading.count().change();
        }
        let is_gone = matches!(
            failed.outcome,
            Outcome::ConnectError | Outcome::ConnectTimeout | Outcome::Ejected | Outcome::Timeout
        );
        let may_go_on = match failed.fate {
            Fate::Unsent => true,
            // Only where it could not write, it has not written.
            Fate::Lost => {
                let has_only_read = !asked.request.is_again && !Word(of.noted.get()).writes();
                asked.class == Class::Read && has_only_read && !is_for_reads(asked)
            }
            Fate::Blamed => false,
        };
        // A login, or a reply, may have failed because of the client that it is for.
        if is_gone && !of.is_up {
            match of.drains && failed.outcome == Outcome::Ejected {
                true => {
                    self.nodes.drains(of, &self.settings);
                    self.changes.note();
                }
                false => self.note(of, Answer::Failed(failed.what.to_owned())),
            }
        }
        is_gone && may_go_on
    }

    fn primary(&self, members: &dyn PoolMembers) -> Option<usize> {
        self.writer(members)
    }

    fn has_members(&self, is_its: &dyn Fn(&str) -> bool) {
        self.nodes.retain(is_its, &self.settings);
        if self.nodes.take_news() {
            self.changes.note();
        }
    }

    fn shared(&self) -> Option<Arc<dyn Any + Send + Sync>> {
        Some(Arc::clone(&self.nodes) as Arc<dyn Any + Send + Sync>)
    }

    fn ordered(&self) {
        self.nodes.ordered(self.orders.of_writer(), &self.settings);
        self.note_news();
    }

    fn begin_anew(&self) {
        self.nodes.begin_anew(&self.settings);
        self.note_news();
    }

    fn held(&self) -> Option<HeldWrites> {
        self.nodes.held()
    }

    fn preferred(&self) -> Option<String> {
        self.nodes.preferred(&self.settings)
    }

    fn longest_hold(&self) -> Duration {
        LONGEST_HOLD.min(self.settings.wait / 2)
    }

    fn moving(&self) -> Option<String> {
        self.nodes.moving_to()
    }

    fn closing(&self) -> Option<String> {
        self.nodes.closing()
    }

    fn closed(&self, address: &str) {
        self.nodes.closed(address, &self.settings);
        self.changes.note();
    }

    fn emptying(&self) -> Option<(String, u64)> {
        self.nodes.emptying()
    }

    fn is_emptying(&self, number: u64) -> bool {
        self.nodes.is_emptying(number)
    }

    fn emptied(&self, number: u64) {
        self.nodes.emptied(number, &self.settings);
        self.changes.note();
    }

    fn role(&self, of: &Answerer<'_>) -> Option<RoleStatus> {
        let mut status = self.nodes.role(of.address);
        if status.role == Role::Reader && !of.is_up {
            (status.role, status.since) = (Role::Out, None);
            status
                .why_out
                .push((Reason::Down.word(), Reason::Down.to_string()));
        }
        Some(status)
    }

    fn reads(&self) -> Vec<(Role, u64)> {
        self.reading.counts().into()
    }

    fn retries(&self) -> Vec<(&'static str, u64)> {
        self.again.get()
    }

    fn others(&self) -> Option<OtherProxies> {
        self.settings.is_only_proxy.then(|| self.nodes.others())
    }

    fn monitors(&self) -> Vec<Monitor> {
        [
            (STATUS, ASK_STATUS, STATUS_INTERVAL),
            (PROOF, ASK_PROOF, PROOF_INTERVAL),
            (OTHERS, others::ASK, STATUS_INTERVAL),
        ]
        .map(|(token, text, interval)| {
            let mut message = Vec::new();
            append_query(text, &mut message);
            Monitor {
                interval,
                command: commands::MONITOR,
                message,
                token,
            }
        })
        .into()
    }
}

/// Does this come from a client of a listener that rejects writes?
fn is_for_reads(asked: &PoolRequest<'_>) -> bool {
    Client::of(asked.session).is_some_and(|client| client.door.rejects_writes)
}

/// May the statement of this client, which its server has answered with this error, be given to a server
/// again? What the server has left of it is of no use then.
pub(super) fn may_go_again(client: &Client, by: Word, reply: &[u8]) -> bool {
    match (client.is_read, Again::of(reply, client.is_read)) {
        (_, None) => false,
        (_, Some(Again::Conflict)) => by.solves_conflicts() && client.may_run_again(),
        (true, Some(_)) => !client.door.rejects_writes,
        (false, Some(_)) => client.may_begin_anew(),
    }
}

/// The error with which a reply to several statements ends, which may begin well.
fn last_error(mut packets: &[u8]) -> Option<ErrPacket<'_>> {
    let mut last: &[u8] = &[];
    while let Some((header, rest)) = packets.split_first_chunk() {
        let len = (Header::of(*header).len as usize).min(rest.len());
        (last, packets) = rest.split_at(len);
    }
    let is_error = last.first() == Some(&0xff);
    is_error.then(|| ErrPacket::read(last).ok())?
}

/// The code of that error.
fn error_code(reply: &[u8]) -> Option<u16> {
    last_error(reply).map(|error| error.code)
}

/// The text of that error.
fn error_text(reply: &[u8]) -> String {
    last_error(reply).map_or_else(
        || "it answers nonsense".to_owned(),
        |error| String::from_utf8_lossy(error.message).into_owned(),
    )
}

#[cfg(test)]
mod tests {
    use proxima_wire::mysql::append_packet;

    use super::*;

    #[test]
    fn the_error_of_several_statements_is_that_of_the_last_one() {
        let mut reply = Vec::new();
        append_packet(1, &mut reply, |out| out.extend_from_slice(b"\0\0\0\x02\0\0\0"));
        assert_eq!(
            (error_code(&reply), &*error_text(&reply)),
            (None, "it answers nonsense")
        );
        append_packet(2, &mut reply, |out| {
            out.extend_from_slice(b"\xff\xb5\x04#HY000Lock wait timeout")
        });
        assert_eq!(
            (error_code(&reply), &*error_text(&reply)),
            (Some(1205), "Lock wait timeout")
        );
        for len in 0..reply.len() {
            let _ = error_text(&reply[..len]);
        }
    }
}
