//! Visits at the servers of copies that are out: until they answer, and to pay what they owe.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use crate::{
    config::schema::Rejoin,
    control::Proxy,
    members::{
        Member, MemberId,
        copies::{Debt, Incarnation, Payment, visit},
        probe,
    },
    route::Random,
};

/// The first pause between two looks at a copy that is out; doubled up to the pool's longest.
const FIRST_LOOK: Duration = Duration::from_millis(50);
/// The longest pause between two looks: what comes back is read again soon after.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// A copy that failed again and again waits this long times two to the number of failures, up to the longest pause.
const SETBACK: Duration = Duration::from_millis(250);
const LONGEST_SETBACK: Duration = Duration::from_secs(30);

impl Proxy {
    /// Proves that our old connections to this copy are gone, and pays its debt.
    pub(super) async fn pay(
        self: Arc<Self>,
        member: Arc<Member>,
        epoch: u64,
        debt: Debt,
        known: Option<Incarnation>,
        rejoin: Rejoin,
    ) {
        let known = match known {
            Some(known) => Ok(known),
            // Once met, a restart can be told.
            None => visit::meet(&member).await.map(|(who, from)| {
                self.state().copies.met(member.id, who, from);
                who
            }),
        };
        let result = match known {
            Ok(known) => visit::pay(&member, &debt, rejoin, known).await,
            Err(why) => Err(why),
        };
        if let Ok((who, _)) = &result {
            self.note_paid(member.id, *who).await;
        }
        let state = &mut *self.state();
        state.copies.paid.remove(&member.id);
        if let Some(figures) = state.copies.figures.get_mut(&member.id) {
            match &result {
                Ok((_, Payment::None)) => {}
                Ok((_, Payment::Keys(keys))) if keys.is_empty() => {}
                Ok((_, Payment::Keys(_))) => figures.repairs += 1,
                Ok((_, Payment::Flush)) => figures.flushes += 1,
                Err(_) => figures.setbacks += 1,
            }
        }
        let result = result.map(|(who, payment)| (who, format!("what it owed is paid: {payment}")));
        let acts = state
            .copies
            .agreement
            .paid(member.id, epoch, result, Instant::now());
        self.perform(state, acts);
    }

    /// Looks at a copy that is out, until it answers and may rejoin.
    pub(super) async fn watch(self: Arc<Self>, id: MemberId, epoch: u64, setbacks: u32) {
        let Some(member) = self.members().into_iter().find(|member| member.id == id) else {
            return;
        };
        let mut random = Random(epoch ^ u64::from(std::process::id()) << 32);
        if setbacks > 0 {
            sleep((SETBACK * 2u32.saturating_pow(setbacks.min(16))).min(LONGEST_SETBACK)).await;
        }
        let mut pause = FIRST_LOOK;
        loop {
            let answers = probe::probe(&member).await.is_ok() && self.has_no_orphans(&member).await;
            {
                let state = &mut *self.state();
                if !state.copies.agreement.is_watched(id, epoch) {
                    return;
                }
                if answers {
                    self.revived(state, &member);
                }
                let acts = state.copies.agreement.reachable(id, epoch, answers);
                if !acts.is_empty() {
                    return self.perform(state, acts);
                }
            }
            sleep(pause.mul_f64(0.75 + random.fraction() / 2.0)).await;
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// Is nothing more to come to this copy by connections of the process before this one? It is asked before any worker
    /// connects. False as well: it does not answer.
    async fn has_no_orphans(&self, member: &Member) -> bool {
        let (is_first, then) = {
            let copies = &self.state().copies;
            if !copies.orphans.threaten(member.id) {
                return true;
            }
            let then = copies.from.get(&member.id).copied();
            (copies.orphans.is_unlisted(member.id), then)
        };
        let Ok(listing) = visit::list(member, then).await else {
            return false;
        };
        let copies = &mut self.state().copies;
        copies.from.extend(listing.from.map(|from| (member.id, from)));
        let waits = copies.orphans.listed(member.id, listing, then, Instant::now());
        let Some((connections, most)) = waits else {
            return true;
        };
        let (pool, name, seconds) = (&member.pool.name, &member.name, most.as_secs());
        let why = match connections {
            Some(1) => "1 connection".to_owned(),
            Some(connections) => format!("{connections} connections"),
            None => "connections that it cannot list".to_owned(),
        };
        let why = format!("what a process before this one has left may still come by {why}");
        if is_first {
            tracing::info!(%pool, member = %name, "copy is not read for up to {seconds} s: {why}");
        }
        copies
            .agreement
            .held_up(member.id, format!("{why}, for up to {seconds} s"));
        false
    }
}
