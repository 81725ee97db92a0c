//! Carries out what the copies' agreement decides.
//!
//! * `visits`: looks at copies that are out, and pays what they owe
//! * `changes`: copies come and go with the lists of servers
//! * `absent`: who is named no more, and may return
//! * `orphans`: connections of the process before this one
//! * `notes`: what the state file says
//! * `state_file`: the file on its disk; `lock`: used by one process at a time; `writer`: and written by a thread of its own

pub(super) mod absent;
mod changes;
mod lock;
mod notes;
mod orphans;
mod state_file;
mod visits;
mod writer;

use std::{
    collections::{HashMap, HashSet},
    io, mem,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::mpsc::{UnboundedReceiver, unbounded_channel},
    task::JoinSet,
    time::{sleep, timeout},
};

use self::{
    notes::{Known, Note},
    orphans::{Orphans, Predecessor},
    state_file::Left,
    writer::{Writer, Written},
};
use super::{Proxy, State};
use crate::{
    config::schema::{Config, Rejoin},
    engine::News,
    members::{
        Member, MemberId,
        copies::{Act, Agreement, Incarnation, Owed, Standing, Views, visit},
    },
    worker::Order,
};

/// So many addresses are remembered; with more, whoever comes may be one of them.
const STRAYS: usize = 10_000;
/// Until what could not be noted is tried again.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// A copy that is about to be read again waits so long for its note.
const NOTE_SOON: Duration = Duration::from_millis(200);
/// A note that takes longer is told.
const NOTE_LATE: Duration = Duration::from_secs(2);
/// The end waits so long for its own note: without it the next start takes this end for a crash.
const LAST_NOTE: Duration = Duration::from_secs(2);

/// The start waits so long for servers to say what a process before this one has left there.
const LOOK_BEFORE: Duration = Duration::from_secs(1);
/// Between two looks at whether all have ended, and at whether a note is written.
const LOOK_AT_END: Duration = Duration::from_millis(5);
const LOOK_AT_NOTE: Duration = Duration::from_millis(1);

/// What the control thread remembers of copies.
pub(super) struct Copies {
    pub(super) agreement: Agreement,
    state_file: Option<StateFileUse>,
    /// Steps of copies that wait until the note of this number is written.
    unnoted: Vec<(MemberId, u64, u64)>,
    /// Our address towards each, by which its server lists our connections.
    from: HashMap<MemberId, IpAddr>,
    /// What the process before this one may have left.
    orphans: Orphans,
    /// Copies that have paid what they owed and are about to be opened.
    paid: HashSet<MemberId>,
    /// It will be tried again.
    notes_again: bool,
    /// Workers that have ended, and whether one has left a copy with a change that it has not answered.
    ended: usize,
    left_unanswered: bool,
    /// Pools that have had members: who comes later is new.
    begun: HashSet<Arc<str>>,
    /// By endpoint of copies that were removed: our ends of connections that broke with requests unanswered; none: not known.
    strays: HashMap<String, Vec<Option<SocketAddr>>>,
    pub(super) figures: HashMap<MemberId, CopyFigures>,
    /// Times that the state file could not be written.
    pub(super) note_failures: u64,
}

/// The state file, where there is one: what it said at the start, and who writes it.
struct StateFileUse {
    known: Known,
    writer: Writer,
    /// The last note that was put, unless it could not be written.
    last: Option<Vec<Note>>,
    /// The end's own note was put: nothing is written behind it.
    closed: bool,
}

/// What has become of notes; to be heard by [`Proxy::hear_of_notes`].
pub(in crate::control) type NotesWritten = UnboundedReceiver<Written>;

/// What happened to a copy, for `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyFigures {
    /// Times that it was found to owe.
    pub debts: u64,
    /// Debts that were paid by deleting keys, and by a flush.
    pub repairs: u64,
    /// Copies that were emptied as a whole.
    pub flushes: u64,
    /// Visits that could not pay.
    pub setbacks: u64,
}

impl Copies {
    pub(super) fn new(participants: usize, config: &Config) -> io::Result<(Self, NotesWritten)> {
        let (written, heard) = unbounded_channel();
        let state_file = match &config.state {
            Some(path) => {
                let (writer, known) = Writer::open(path, written)?;
                Some(StateFileUse {
                    known,
                    writer,
                    last: None,
                    closed: false,
                })
            }
            None => None,
        };
        let before = match state_file.as_ref().map(|file: &StateFileUse| &file.known) {
            Some(known) if known.is_first => Predecessor::Unknown,
            Some(known) if known.rebooted => Predecessor::Rebooted,
            _ => Predecessor::Here,
        };
        let copies = Self {
            agreement: Agreement::new(participants),
            state_file,
            unnoted: Vec::new(),
            from: HashMap::new(),
            orphans: Orphans::of(before),
            paid: HashSet::new(),
            notes_again: false,
            ended: 0,
            left_unanswered: false,
            begun: HashSet::new(),
            strays: HashMap::new(),
            figures: HashMap::new(),
            note_failures: 0,
        };
        Ok((copies, heard))
    }

    /// After an unclean end, before anybody is served: looks which copies have anything left of the process before this one.
    /// Most have nothing, and are read from the start on.
    pub(super) async fn look_for_orphans(&mut self, members: &[Arc<Member>]) {
        let Some(StateFileUse { known, .. }) = self.state_file.as_ref().filter(|file| !file.known.clean)
        else {
            return;
        };
        let end = Instant::now() + LOOK_BEFORE;
        let mut looks = JoinSet::new();
        for member in copies_of(members).filter(|member| member.socket.is_some()) {
            let (member, then) = (Arc::clone(member), known.of(member).and_then(|note| note.from));
            looks.spawn(async move {
                let listing = timeout(LOOK_BEFORE, visit::list_until(&member, then, end)).await;
                Some((member.id, then, listing.ok()?.ok()?))
            });
        }
        while let Some(look) = looks.join_next().await {
            if let Ok(Some((copy, then, listing))) = look {
                self.orphans.expect(copy);
                self.from.extend(listing.from.map(|from| (copy, from)));
                self.orphans.listed(copy, listing, then, Instant::now());
            }
        }
    }

    /// This copy's server was met, and sees us at this address.
    fn met(&mut self, member: MemberId, who: Incarnation, from: Option<IpAddr>) {
        self.agreement.met(member, who);
        if let Some(from) = from {
            self.from.insert(member, from);
        }
    }

    /// This member is gone, and its server may still execute what came by a connection of ours with this end.
    fn stray(&mut self, member: &Member, end: Option<SocketAddr>) {
        if self.strays.len() < STRAYS {
            self.strays.entry(member.endpoint()).or_default().push(end);
        }
    }

    /// The standings, for `explain`.
    pub(super) fn views(&self, members: &[Arc<Member>]) -> Views {
        let mut views = Views::default();
        for member in members.iter().filter(|member| member.is_copy()) {
            views.show(member.id, self.agreement.standing(member.id));
        }
        views
    }
}

/// The copies of a configuration.
fn copies_of(members: &[Arc<Member>]) -> impl Iterator<Item = &Arc<Member>> {
    members.iter().filter(|member| member.is_copy())
}

impl Proxy {
    /// Something about a copy was heard from a worker.
    pub(super) fn hear(self: &Arc<Self>, news: News) {
        let now = Instant::now();
        let state = &mut *self.state();
        let acts = match news {
            News::Missed(member, why) => {
                if !state.members.iter().any(|known| known.id == member.id) {
                    return;
                }
                state
                    .copies
                    .agreement
                    .missed(member.id, &member.pool.name, &why, Owed::default(), now)
            }
            News::Broken(member, address) => {
                if state.members.iter().any(|known| known.id == member.id) {
                    state.copies.agreement.broken(member.id, address);
                } else {
                    state.copies.stray(&member, address);
                }
                return;
            }
            News::Follows {
                worker,
                member,
                epoch,
                owed,
            } => state
                .copies
                .agreement
                .acknowledged(worker, member, epoch, owed, now),
            News::Stranger(reason) => {
                tracing::warn!(%reason, "closed a client");
                return;
            }
            News::Ejected(..) | News::Short(_) => return,
            News::Ended { unanswered } => {
                state.copies.ended += 1;
                state.copies.left_unanswered |= unanswered;
                return;
            }
        };
        self.perform(state, acts);
    }

    /// In order, and under the lock: workers hear proposals in the order in which they were made.
    pub(super) fn perform(self: &Arc<Self>, state: &mut State, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Propose {
                    member,
                    epoch,
                    standing,
                } => {
                    let figures = state.copies.figures.entry(member).or_default();
                    figures.debts += u64::from(standing == Standing::Leaving);
                    if let Some(known) = state.members.iter().find(|known| known.id == member) {
                        let why = state.copies.agreement.reason(member);
                        let (pool, member) = (&known.pool.name, &known.name);
                        match standing {
                            Standing::Leaving => tracing::warn!(%pool, %member, %standing, why, "copy"),
                            _ => tracing::info!(%pool, %member, %standing, why, "copy"),
                        }
                    }
                    self.workers.order(|_| Order::Stand {
                        member,
                        epoch,
                        standing,
                    });
                }
                Act::Note { member, epoch } => {
                    // Until it has a number it waits for whatever is written.
                    state.copies.unnoted.push((member, epoch, u64::MAX));
                    self.note(state);
                }
                Act::Watch {
                    member,
                    epoch,
                    setbacks,
                } => {
                    self.runtime
                        .spawn(Arc::clone(self).watch(member, epoch, setbacks));
                }
                Act::Pay {
                    member,
                    epoch,
                    debt,
                    known,
                } => {
                    if let Some(found) = state.members.iter().find(|known| known.id == member) {
                        let rejoin = rejoin_of(&state.loaded.config, &found.pool.name);
                        let paid = Arc::clone(self).pay(Arc::clone(found), epoch, debt, known, rejoin);
                        self.runtime.spawn(paid);
                    }
                }
            }
        }
    }

    /// Has written down who owes, so that it outlives this process; what waits for that goes on when it is done.
    fn note(self: &Arc<Self>, state: &mut State) {
        let rows = rows(state);
        let copies = &mut state.copies;
        let Some(file) = &mut copies.state_file else {
            return self.noted(state, u64::MAX);
        };
        if file.closed {
            return;
        }
        let is_idle = file.writer.done == file.writer.newest;
        if file.last.as_ref() != Some(&rows) {
            file.last = Some(rows.clone());
            let number = file.writer.put(rows, false);
            if is_idle {
                self.runtime.spawn(Arc::clone(self).warn_if_late(number));
            }
        }
        let (newest, done) = (file.writer.newest, file.writer.done);
        for (_, _, number) in &mut copies.unnoted {
            *number = newest.min(*number);
        }
        if done == newest {
            self.noted(state, newest);
        }
    }

    /// Notes up to this number are written: what waited for them goes on.
    fn noted(self: &Arc<Self>, state: &mut State, number: u64) {
        let unnoted = &mut state.copies.unnoted;
        let done: Vec<_> = unnoted.extract_if(.., |&mut (_, _, of)| of <= number).collect();
        for (member, epoch, _) in done {
            let acts = state.copies.agreement.noted(member, epoch);
            self.perform(state, acts);
        }
    }

    /// Hears what becomes of notes.
    pub(super) async fn hear_of_notes(self: Arc<Self>, mut notes: NotesWritten) {
        while let Some(Written { number, left }) = notes.recv().await {
            let state = &mut *self.state();
            let copies = &mut state.copies;
            if let Some(file) = &mut copies.state_file {
                file.writer.done = number;
            }
            if left != Left::Newest {
                if let Some(file) = &mut copies.state_file {
                    file.last = None;
                }
                copies.note_failures += 1;
                if !mem::replace(&mut copies.notes_again, true) {
                    self.runtime.spawn(Arc::clone(&self).note_again());
                }
            }
            if left != Left::Older {
                self.noted(state, number);
            }
        }
    }

    async fn note_again(self: Arc<Self>) {
        sleep(NOTE_AGAIN).await;
        let state = &mut *self.state();
        state.copies.notes_again = false;
        self.note(state);
    }

    /// This copy has paid what it owed to a server in this life: notes it before the copy is read again, so that a restart
    /// soon after does not make it pay once more. A disk that is slow is not waited for.
    async fn note_paid(self: &Arc<Self>, copy: MemberId, who: Incarnation) {
        let number = {
            let state = &mut *self.state();
            state.copies.paid.insert(copy);
            state.copies.agreement.met(copy, who);
            self.note(state);
            let file = state.copies.state_file.as_ref();
            file.map_or(0, |file| file.writer.newest)
        };
        let _ = timeout(NOTE_SOON, self.written(number)).await;
    }

    /// Until the note of this number is written, or a later one.
    async fn written(&self, number: u64) {
        let done = || {
            let state = self.state();
            state
                .copies
                .state_file
                .as_ref()
                .map_or(number, |file| file.writer.done)
        };
        while done() < number {
            sleep(LOOK_AT_NOTE).await;
        }
    }

    async fn warn_if_late(self: Arc<Self>, number: u64) {
        sleep(NOTE_LATE).await;
        let state = &mut *self.state();
        if let Some(file) = &state.copies.state_file
            && file.writer.done < number
        {
            state.copies.note_failures += 1;
            let path = file.writer.path().display();
            tracing::error!(%path, "the disk of the state file does not answer: until it does, writes that a copy misses are refused");
        }
    }

    /// The workers have been told to end: once all have, notes that they did so cleanly, if that is so.
    pub(super) async fn note_end(self: &Arc<Self>) {
        let ended = async {
            while self.state().copies.ended < self.workers.len() {
                sleep(LOOK_AT_END).await;
            }
        };
        // One that has panicked does not say so.
        let all = timeout(LAST_NOTE, ended).await.is_ok();
        let number = {
            let state = &mut *self.state();
            let rows = rows(state);
            let copies = &mut state.copies;
            let clean = all && !copies.left_unanswered && copies.orphans.is_empty();
            let Some(file) = &mut copies.state_file else {
                return;
            };
            file.closed = true;
            file.writer.put(rows, clean)
        };
        if timeout(LAST_NOTE, self.written(number)).await.is_err() {
            tracing::warn!(
                "the disk of the state file does not answer: the next start takes this end for a crash"
            );
        }
    }
}

/// What is to be noted of each copy.
fn rows(state: &State) -> Vec<Note> {
    let copies = &state.copies;
    let Some(file) = &copies.state_file else {
        return Vec::new();
    };
    let named = copies_of(&state.members).map(|member| {
        let owing = copies.agreement.snapshot(member.id);
        let owing = owing.filter(|copy| match copy.standing {
            Standing::Leaving | Standing::Out => true,
            Standing::Joining => !copies.paid.contains(&member.id),
            Standing::Opening | Standing::Current => false,
        });
        let owes = owing.map(|copy| copy.why);
        let from = copies.from.get(&member.id).copied();
        Note::new(member, copies.agreement.life(member.id), from, owes)
    });
    let configured = &state.loaded.config.pools;
    let unnamed = file
        .known
        .of_pools(|pool| copies.begun.contains(pool) || !configured.contains_key(pool));
    named.chain(unnamed.cloned()).collect()
}

fn rejoin_of(config: &Config, pool: &str) -> Rejoin {
    config
        .pools
        .get(pool)
        .and_then(|pool| pool.replicated)
        .map_or(Rejoin::Repair, |replicated| replicated.rejoin)
}
