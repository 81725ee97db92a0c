//! Copies come and go with the lists of servers.

use std::{sync::Arc, time::Instant};

use tokio::{task::spawn_blocking, time::sleep_until};

use super::{STRAYS, copies_of};
use crate::{
    config::schema::Replicated,
    control::{Proxy, State},
    members::{
        Member, MemberId,
        copies::{Owed, Standing, visit},
    },
    worker::Order,
};

impl Proxy {
    /// Before a change of members takes effect: who goes is read no more.
    pub(in crate::control) fn dismiss_copies(&self, state: &State, next: &[Arc<Member>]) {
        let gone: Vec<MemberId> = copies_of(&state.members)
            .filter(|member| !next.iter().any(|other| other.id == member.id))
            .map(|member| member.id)
            .collect();
        if gone.is_empty() {
            return;
        }
        // As for one that missed a write: nobody goes on without it before nobody reads it.
        for standing in [Standing::Leaving, Standing::Out] {
            let (done, all) = std::sync::mpsc::channel();
            self.workers.order(|_| Order::Dismiss {
                members: gone.clone(),
                standing,
                done: done.clone(),
            });
            drop(done);
            let _ = all.iter().count();
        }
    }

    /// Who comes is read only when every worker writes to it and nothing older is left there. `before` are the members
    /// until now; the workers have not yet the tree that names the new ones.
    pub(in crate::control) fn welcome_copies(self: &Arc<Self>, state: &mut State, before: &[Arc<Member>]) {
        let now = Instant::now();
        let members = state.members.clone();
        for member in copies_of(before) {
            if !members.iter().any(|other| other.id == member.id) {
                let copies = &mut state.copies;
                copies.figures.remove(&member.id);
                copies.from.remove(&member.id);
                copies.orphans.forget(member.id);
                let debt = copies.agreement.removed(member.id);
                debt.ends().for_each(|end| copies.stray(member, end));
            }
        }
        let config = &state.loaded.config;
        for (name, pool) in &config.pools {
            if let Some(replicated) = &pool.replicated {
                let size = copies_of(&members)
                    .filter(|member| *member.pool.name == **name && !state.absent.holds(member))
                    .count();
                let had = copies_of(before)
                    .filter(|member| *member.pool.name == **name)
                    .count();
                let told = pool.source.fixed().is_some(); // when it was read
                if size == 2 && had != 2 && replicated.min_acks.is_none() && !told {
                    tracing::warn!(pool = %name, "has {}; with min_acks 1 both go on", Replicated::TWO);
                }
                state
                    .copies
                    .agreement
                    .group(name, size, replicated.acks_of(size).min(size));
            }
        }
        let begun = state.copies.begun.clone();
        let mut acts = Vec::new();
        let mut unknown = Vec::new();
        for member in copies_of(&members) {
            if before.iter().any(|other| other.id == member.id) {
                continue;
            }
            let copies = &mut state.copies;
            let first = !begun.contains(&member.pool.name);
            if member.socket.is_some() {
                // Without an address nobody has been written to: who comes with the first answers was there before.
                copies.begun.insert(Arc::clone(&member.pool.name));
            }
            let known = copies.state_file.as_ref().map(|file| &file.known);
            let note = known.map(|known| known.of(member).cloned());
            let unclean = first && member.socket.is_some() && known.is_some_and(|known| !known.clean);
            if unclean {
                copies.orphans.expect(member.id);
            }
            let has_orphans = copies.orphans.threaten(member.id);
            if let Some(Some(note)) = &note {
                // One that owes nothing is taken as it is, whoever it is by now.
                let met = note.met.filter(|_| note.owes.is_some() || !has_orphans);
                if let Some(met) = met {
                    copies.agreement.met(member.id, met);
                }
                if let Some(from) = note.from {
                    copies.from.entry(member.id).or_insert(from);
                }
            }
            let (why, owed) = match &note {
                _ if member.socket.is_none() => ("its name does not resolve", Owed::everything()),
                _ if !first => ("it is new: what it holds is not known", Owed::everything()),
                Some(Some(note)) if note.owes.is_some() => {
                    ("it missed writes before this process began", Owed::everything())
                }
                Some(None) => ("the state file does not know it", Owed::everything()),
                Some(Some(_)) if has_orphans => {
                    ("the process before this one did not end cleanly", Owed::default())
                }
                None | Some(Some(_)) => {
                    unknown.push(Arc::clone(member));
                    continue;
                }
            };
            acts.extend(
                copies
                    .agreement
                    .missed(member.id, &member.pool.name, why, owed, now),
            );
            // Connections whose addresses nobody knows may still bring it something: of the process before this one, or
            // of a member that it was before.
            let unknown = member.socket.is_some() && (first && !unclean || copies.strays.len() == STRAYS);
            if unknown || before.iter().any(|other| other.endpoint() == member.endpoint()) {
                copies.agreement.broken(member.id, None);
            }
            for end in copies.strays.remove(&member.endpoint()).unwrap_or_default() {
                copies.agreement.broken(member.id, end);
            }
        }
        for member in copies_of(&members) {
            acts.extend(match state.absent.holds(member) {
                true => state.copies.agreement.vanished(member.id, &member.pool.name, now),
                false => state.copies.agreement.returned(member.id),
            });
        }
        self.perform(state, acts);
        self.note(state);
        for member in unknown {
            self.runtime.spawn(Arc::clone(self).meet(member));
        }
    }

    /// At the start a copy that answers is taken as good; one that is silent may have been left out of writes.
    async fn meet(self: Arc<Self>, member: Arc<Member>) {
        let met = visit::meet(&member).await;
        let state = &mut *self.state();
        match met {
            Ok((who, from)) => state.copies.met(member.id, who, from),
            Err(why) => {
                let why = format!("it did not answer at the start: {why}");
                let acts = state.copies.agreement.missed(
                    member.id,
                    &member.pool.name,
                    &why,
                    Owed::everything(),
                    Instant::now(),
                );
                // The process before this one may have had a request on its way there.
                state.copies.agreement.broken(member.id, None);
                self.perform(state, acts);
            }
        }
        self.note(state);
    }

    /// At that time the grace of an absent copy ends.
    pub(in crate::control) fn expect_no_longer(self: &Arc<Self>, until: Option<Instant>) {
        let Some(until) = until else { return };
        let proxy = Arc::clone(self);
        self.runtime.spawn(async move {
            sleep_until(until.into()).await;
            // Each change since has left one like this behind: the first has done it.
            if proxy
                .state()
                .absent
                .until()
                .is_none_or(|until| until > Instant::now())
            {
                return;
            }
            // It waits for the workers, which would hold up the control thread.
            let _ = spawn_blocking(move || proxy.renew()).await;
        });
    }
}
