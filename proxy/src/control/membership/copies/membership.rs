//! Copies come and go with the lists of servers.

use std::{
    mem,
    sync::{Arc, mpsc},
    time::Instant,
};

use super::{Copies, copies_of, repairs};
use crate::{
    config::schema::Replicated,
    control::{Proxy, Rooms, membership::Membership, workers::wait},
    copies::{
        CopyState, MissedKeys,
        state_file::{PreviousRun, Record},
    },
    members::{Member, MemberId},
    worker::Order,
};

/// What is known of a copy that comes to its pool.
enum Arrival {
    /// It may have missed writes, for this reason.
    Stale(&'static str, MissedKeys),
    /// It is read from now on, unless its server does not answer.
    Trusted,
}

impl Proxy {
    /// Removes these copies, which are members no longer: no worker reads them from now on, and then no write
    /// waits for them. It waits for the workers, with no lock held.
    pub(in crate::control) fn remove_copies(&self, gone: &[MemberId]) {
        {
            // They are forgotten first, so that nothing is proposed about them any more.
            let membership = &mut self.rooms().membership;
            let members = mem::take(&mut membership.members).into_iter();
            let (removed, members): (Vec<_>, _) = members.partition(|member| gone.contains(&member.id));
            membership.members = members;
            let Copies {
                agreement, ledger, ..
            } = &mut membership.copies;
            for member in removed {
                ledger.forget(&member.identity);
                let missed = agreement.removed(&member.identity);
                missed.ends().for_each(|end| ledger.orphan(&member, end));
            }
        }
        // As for a copy that missed a write: no write goes on without it before every worker has stopped
        // reading it.
        for state in [CopyState::Leaving, CopyState::Out] {
            let (done, all) = mpsc::channel();
            self.workers.order(|_| Order::SetCopies {
                members: gone.to_vec(),
                state,
                done: done.clone(),
            });
            drop(done);
            wait(&all);
        }
    }

    /// Copies that come are read only when every worker writes to them and nothing older is left there.
    /// `before` are the members until now; the workers have not yet the tree that names the new ones.
    pub(in crate::control) fn add_copies(self: &Arc<Self>, rooms: &mut Rooms, before: &[Arc<Member>]) {
        let now = Instant::now();
        let members = rooms.membership.members.clone();
        set_pools(rooms, before);
        let begun = rooms.membership.copies.ledger.begun.clone();
        let mut acts = Vec::new();
        let mut trusted = Vec::new();
        for member in copies_of(&members) {
            if before.iter().any(|other| other.id == member.id) {
                continue;
            }
            let first = !begun.contains(&member.pool.name);
            let has_twin = before.iter().any(|other| other.endpoint() == member.endpoint());
            let copies = &mut rooms.membership.copies;
            match copies.arrival(member, first) {
                Arrival::Trusted => trusted.push(Arc::clone(member)),
                Arrival::Stale(why, missed) => {
                    acts.extend(copies.agreement.mark_stale(&member.identity, why, missed, now));
                    copies.expect_old_connections(member, first, has_twin);
                }
            }
        }
        for member in copies_of(&members) {
            let Membership { departed, copies, .. } = &mut rooms.membership;
            acts.extend(match departed.contains(member) {
                true => copies.agreement.departed(&member.identity, now),
                false => copies.agreement.returned(&member.identity),
            });
        }
        self.execute(rooms, acts);
        self.save(rooms);
        for member in trusted {
            self.runtime.spawn(Arc::clone(self).meet(member));
        }
    }

    /// At the start a copy that answers is trusted; one that is silent may have been left out of writes.
    async fn meet(self: Arc<Self>, member: Arc<Member>) {
        let met = repairs::meet(&member).await;
        let rooms = &mut *self.rooms();
        let Membership { members, copies, .. } = &mut rooms.membership;
        match met {
            // It was removed meanwhile.
            _ if !members.iter().any(|known| known.id == member.id) => return,
            Ok((life, from)) => copies.met(&member, life, from),
            Err(error) => {
                let why = format!("it did not answer at the start: {error}");
                let agreement = &mut copies.agreement;
                let (server, missed) = (&member.identity, MissedKeys::everything());
                let acts = agreement.mark_stale(server, &why, missed, Instant::now());
                // The process before this one may have had a request on its way there.
                agreement.broken(server, None);
                self.execute(rooms, acts);
            }
        }
        self.save(rooms);
    }
}

impl Copies {
    /// What is known of this copy, which comes to its pool; `first`: with the first members of the pool.
    fn arrival(&mut self, member: &Member, first: bool) -> Arrival {
        let (agreement, ledger) = (&mut self.agreement, &mut self.ledger);
        let server = &member.identity;
        if member.socket.is_some() {
            // Without an address no server has been written to: one that comes with the first answers was
            // there before.
            ledger.begun.insert(Arc::clone(&member.pool.name));
        }
        if is_unclean(ledger.saving.known(), member, first) {
            ledger.orphans.expect(server);
        }
        let has_orphans = ledger.orphans.threaten(server);
        let known = ledger.saving.known();
        let record: Option<Option<&Record>> = known.map(|known| known.of(server));
        if let Some(Some(record)) = record {
            // A copy that missed nothing is taken as it is, whatever life its server is in by now.
            let met = record.met.filter(|_| record.missed.is_some() || !has_orphans);
            if let Some(met) = met {
                agreement.met(server, met);
            }
            if let Some(from) = record.from {
                ledger.from.entry(server.clone()).or_insert(from);
            }
        }
        match record {
            _ if member.socket.is_none() => {
                Arrival::Stale("its name does not resolve", MissedKeys::everything())
            }
            _ if !first => Arrival::Stale("it is new: what it holds is not known", MissedKeys::everything()),
            Some(Some(record)) if record.missed.is_some() => Arrival::Stale(
                "it missed writes before this process began",
                MissedKeys::everything(),
            ),
            Some(None) => Arrival::Stale("the state file does not know it", MissedKeys::everything()),
            Some(Some(_)) if has_orphans => Arrival::Stale(
                "the process before this one did not end cleanly",
                MissedKeys::default(),
            ),
            None | Some(Some(_)) => Arrival::Trusted,
        }
    }

    /// Connections may still bring a stale copy something: of the process before this one, or of a member
    /// that it was before (`has_twin`).
    fn expect_old_connections(&mut self, member: &Member, first: bool, has_twin: bool) {
        let (agreement, ledger) = (&mut self.agreement, &mut self.ledger);
        let unclean = is_unclean(ledger.saving.known(), member, first);
        let unknown = member.socket.is_some() && (first && !unclean || ledger.forgets_orphaned());
        if unknown || has_twin {
            agreement.broken(&member.identity, None);
        }
        for end in ledger.take_orphaned(member) {
            agreement.broken(&member.identity, end);
        }
    }
}

/// May the process before this one have left connections at a copy that comes with the first members of its
/// pool?
fn is_unclean(known: Option<&PreviousRun>, member: &Member, first: bool) -> bool {
    first && member.socket.is_some() && known.is_some_and(|known| !known.clean)
}

/// Tells the agreement how many members each pool has, and warns of pools in which a majority is all of them.
fn set_pools(rooms: &mut Rooms, before: &[Arc<Member>]) {
    let Membership {
        members,
        departed,
        copies,
        ..
    } = &mut rooms.membership;
    for (name, pool) in &rooms.configuration.config().pools {
        let Some(replicated) = &pool.replicated else {
            continue;
        };
        let size = copies_of(members)
            .filter(|member| *member.pool.name == **name && !departed.contains(member))
            .count();
        let had = copies_of(before)
            .filter(|member| *member.pool.name == **name)
            .count();
        let told = pool.source.fixed().is_some(); // when it was read
        if size == 2 && had != 2 && replicated.min_acks.is_none() && !told {
            tracing::warn!(pool = %name, "has {}; with min_acks 1 both go on", Replicated::TWO);
        }
        let quorum = replicated.acks_of(size).min(size);
        copies.agreement.set_pool(name, size, quorum);
    }
}
