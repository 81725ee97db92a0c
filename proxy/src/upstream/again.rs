//! The requests on a connection that was lost, and which of them the next connection is given.
//!
//! Invariant: a request that may change something is sent once. A read is sent again, as what ended the
//! connection may be another client's request, or the server's wish to have one connection less.
//!
//! The server works on the requests of a connection in their order. What ended the connection may therefore
//! be the first request that it has not answered: it is the suspect. A large suspect, or one of a client that
//! has not logged in, is sent nowhere any more, to no other server either. Another one that is a read has one
//! more try at this server.

use std::{collections::VecDeque, mem, sync::Arc};

use proxima_wire::message::{Outcome, Parsed};

use super::{Lane, Trial, Unwritten, Waiter};
use crate::{
    config::schema::EjectBy,
    engine::Engine,
    members::{Failure, Member},
    near::OpenChange,
    protocol::{Failed, Fate, Protocol},
    queue::Queue,
};

/// The replacement of a connection that was lost.
pub(super) struct Replacement {
    pub(super) member: Arc<Member>,
    login: u16,
    /// [`Lane::lost`] of the connection.
    lost: u8,
    /// The requests that it is given, and what waits for them.
    held: Vec<u8>,
    waiters: Queue<Waiter>,
    /// Their changes.
    changes: VecDeque<OpenChange>,
    /// Requests that were not written yet.
    unwritten: Vec<Unwritten>,
}

impl Engine {
    /// Makes another connection in place of one that was lost. Where suspicion ejects nobody, nothing is
    /// to be decided, and it is made only for the requests that wait.
    pub(super) fn connect_again(&mut self, next: Replacement, failed: &Failed<'_>) {
        let Replacement { member, login, .. } = &next;
        let is_asked = self.tree.names(member.id) && self.servers.logins.is_wanted(*login);
        let is_new = self.lanes_of(member).shared.get(*login).is_none();
        let is_waited_for = !next.waiters.is_empty() || !next.unwritten.is_empty();
        let decides = member.health.eject().failures > 0 || is_waited_for;
        if is_asked && is_new && decides && member.is_up() {
            let id = self.shared_lane(member, *login);
            if let Some(lane) = self.servers.lanes.get_mut(id) {
                lane.lost = next.lost;
                lane.given = next.held.len() as u64;
                (lane.held, lane.waiters) = (next.held, next.waiters);
                lane.changes = next.changes;
                lane.unwritten = next.unwritten;
            }
            return;
        }
        self.servers.in_flight -= next.waiters.len();
        let failed = Failed {
            server: &next.member.address,
            ..*failed
        };
        for waiter in next.waiters {
            self.fail(waiter.to, &failed);
        }
        let fate = Fate::Unsent;
        self.fail_unwritten(next.unwritten, &Failed { fate, ..failed });
    }
}

impl Lane {
    /// The most connections in a row that are lost before anything was said on them. One more, and the server
    /// has failed.
    const MOST_LOST: u8 = 2;

    /// The connection to be made in place of this one, with the requests that it is given. `None`: this
    /// failure is the server's. A server that has answered on this very connection was well. It may have
    /// closed the connection for what one client has sent, to have one less, or because it was told to; and
    /// so it may with one whose login is under way.
    pub(super) fn next(&mut self, failure: Failure, outcome: Outcome) -> Option<Replacement> {
        let counts_all = self.member.health.eject().by == EjectBy::LostConnections;
        if failure != Failure::Connection || counts_all {
            return None;
        }
        let is_new = self.logs_in() && outcome != Outcome::ConnectTimeout && !self.member.is_copy();
        let lost = match self.is_proven() {
            true if self.dedicated => return None,
            true => 0,
            false if is_new && self.lost < Self::MOST_LOST => self.lost + 1,
            false => return None,
        };
        self.suspect();
        let (held, waiters, changes) = self.take_again();
        let is_sharing = !self.dedicated && !self.bulk;
        // What went before the first of them may be what has ended the connection: that one is not tried here
        // again.
        let tried = usize::from(self.awaits_before);
        let unwritten = match is_sharing {
            true => self.unwritten.split_off(tried.min(self.unwritten.len())),
            false => Vec::new(),
        };
        Some(Replacement {
            member: Arc::clone(&self.member),
            login: self.login,
            lost,
            held,
            waiters,
            changes,
            unwritten,
        })
    }

    /// Notes that the connection has ended at the first request of which something was sent.
    fn suspect(&mut self) {
        let unsent = if self.holding {
            self.held.len()
        } else {
            self.unsent()
        };
        let is_nobody = self.limited && self.login != 0;
        let Some(first) = self.waiters.first_mut() else {
            return;
        };
        if first.behind(self.given) <= unsent {
            return;
        }
        first.trial = match first.trial {
            Trial::Innocent if !is_nobody => Trial::Suspect,
            _ => Trial::Blamed,
        };
    }

    /// Takes the requests that the next connection is given, and what waits for them: those of which nothing
    /// was sent, and reads.
    fn take_again(&mut self) -> (Vec<u8>, Queue<Waiter>, VecDeque<OpenChange>) {
        if self.dedicated || self.bulk || self.fitted || self.proofs.are_awaited() || self.member.is_copy() {
            return Default::default();
        }
        let sent = if self.holding { 0 } else { self.stream.kept };
        let bytes = mem::take(self.requests());
        self.stream.kept = 0;
        let position = |waiter: &Waiter| bytes.len().checked_sub(waiter.behind(self.given));
        let waiters = mem::take(&mut self.waiters);
        let mut changes = mem::take(&mut self.changes);
        let mut going = VecDeque::new();
        // Between two requests with a reply there may be some without one. Each write to the socket has ended
        // with a whole request, so that what is behind `sent` are whole requests, too.
        let first = waiters.iter().find_map(position).unwrap_or(bytes.len());
        let mut held = bytes.get(sent..first).unwrap_or_default().to_vec();
        let mut again = Queue::default();
        for (number, &waiter) in waiters.iter().enumerate() {
            let begin = position(&waiter);
            let end = waiters.get(number + 1).and_then(position).unwrap_or(bytes.len());
            let at = held.len() as u32;
            let goes = match begin {
                // The client may have a part of the reply.
                _ if number == 0 && self.part_bytes > 0 => None,
                Some(begin) if begin >= sent => bytes.get(begin..end),
                Some(begin) => waiter.once_more(self.member.protocol, bytes.get(begin..end)),
                None => None,
            };
            let change = match waiter.effects.is_counted() {
                true => changes.pop_front(),
                false => None,
            };
            match goes {
                Some(message) => {
                    going.extend(change);
                    held.extend_from_slice(message);
                    again.push(Waiter { at, ..waiter });
                }
                None => {
                    self.changes.extend(change);
                    self.waiters.push(waiter);
                }
            }
            if begin.is_some_and(|begin| begin < sent) {
                held.extend_from_slice(bytes.get(sent..end).unwrap_or_default());
            }
        }
        (held, again, going)
    }
}

impl Waiter {
    /// The request that may be sent once more, at the beginning of `sent`. `None` if it may not be, or if it
    /// is not kept.
    fn once_more<'a>(&self, protocol: &dyn Protocol, sent: Option<&'a [u8]>) -> Option<&'a [u8]> {
        let sent = sent.filter(|_| self.effects.reads() && self.trial != Trial::Blamed)?;
        match protocol.head(sent) {
            // A transaction is several requests here.
            Parsed::Head(request) if request.command == self.command => sent.get(..request.len() as usize),
            _ => None,
        }
    }

    /// The fate of the request as its lane ends. `is_ready`: before the lane was ready nothing of it was
    /// sent.
    pub(super) fn fate(&self, is_ready: bool) -> Fate {
        match self.trial {
            Trial::Blamed => Fate::Blamed,
            _ if is_ready => Fate::Lost,
            _ => Fate::Unsent,
        }
    }
}
