//! What is known of one server.

use std::time::{Duration, Instant};

use super::super::{
    answer::{Answer, Status},
    reason::Reason,
};
use crate::protocol::{Mark, MemberNote, OneWriter, OtherProxies, Progress, Role};

/// Time for what is under way at a writer that brings another server up to date, is in maintenance, or
/// drains. The first may keep what is committed there until it is done.
const LEAVING: Duration = Duration::from_secs(5);
/// The same for one that an operator has reject queries, or writes: what runs there may end.
const REJECTING: Duration = Duration::from_secs(1);
/// The same for one that leaves its cluster: it rejects at once what has reached it.
const ENDING: Duration = Duration::from_millis(250);
/// The time for which an answer about other proxies holds. The server keeps the lock by which another proxy
/// finds this one for [twice as long](super::super::others::ASK): a process that was frozen asks before it
/// trusts.
pub(super) const ALONE: Duration = Duration::from_secs(5);

/// The state of a server.
#[derive(Default)]
pub(super) struct Node {
    pub(super) number: u32,
    pub(super) status: Status,
    /// The time since 1970, in µs, at which it was asked for its last status.
    pub(super) status_asked: u64,
    /// The reasons why nobody is sent there; if empty, it serves when it has proved that it can.
    pub(super) why_not: Vec<Reason>,
    /// It belongs to another cluster than the writer.
    pub(super) is_foreign: bool,
    /// The number of times that it has waited for the others since it says that all is well. The first wait
    /// may have begun before.
    pub(super) proofs: u32,
    /// The barrier that it is asked for: what it has when it has answered, and the time since 1970, in µs.
    pub(super) asked: Option<(Mark, u64)>,
    /// The time at which it was asked for a barrier, and that for the last one that it has answered.
    pub(super) proof_asked: Option<Instant>,
    pub(super) proved: Option<Instant>,
    /// The role that it has, and the time since which it has it.
    pub(super) role: Option<(Role, Instant)>,
    /// The time since which it may be given writes.
    pub(super) able_since: Option<Instant>,
    /// What it tells of other proxies, and the time at which it was asked for that and answered.
    pub(super) others: OtherProxies,
    pub(super) others_asked: Option<Instant>,
    pub(super) others_told: Option<Instant>,
    /// May it be given anything, as far as the pool knows?
    pub(super) is_up: bool,
    /// May it not be, because it drains?
    pub(super) drains: bool,
    /// The note about it that all workers read.
    pub(super) noted: MemberNote,
}

impl Node {
    /// Has it said that all is well, and proved it since?
    pub(super) fn serves(&self) -> bool {
        self.why_not.is_empty() && !self.is_foreign && self.proofs > 1
    }

    /// May it take writes?
    pub(super) fn is_free_to_write(&self) -> bool {
        self.serves() && !self.status.is_read_only && !self.drains
    }

    /// The time for what is under way there, though it may serve nothing new. One that is well again proves
    /// it first. `None`: it has failed.
    pub(super) fn leaves_within(&self) -> Option<Duration> {
        let within = |why: &Reason| match why {
            Reason::Donor | Reason::Maintenance => Some(LEAVING),
            Reason::RejectsQueries => Some(REJECTING),
            Reason::NotPrimary | Reason::NotSynced | Reason::NotReady => Some(ENDING),
            _ => None,
        };
        let longest = if self.status.is_read_only {
            REJECTING
        } else {
            LEAVING
        };
        self.why_not
            .iter()
            .try_fold(longest, |shortest, why| Some(shortest.min(within(why)?)))
    }

    /// Is all well but that it brings another server up to date, or did so until now?
    pub(super) fn is_donor_at_most(&self) -> bool {
        self.why_not.iter().all(|why| *why == Reason::Donor)
    }

    /// The reasons why it does not serve; empty if it does.
    pub(super) fn reasons(&self) -> Vec<Reason> {
        match self.why_not.is_empty() && !self.serves() {
            true if self.is_foreign => vec![Reason::OtherCluster],
            true => vec![Reason::Unproven],
            false => self.why_not.clone(),
        }
    }

    /// How far it was when it last told its status; `None`: its last question has failed, or it does not tell.
    pub(super) fn progress(&self) -> Option<Progress> {
        let has_failed = self.why_not.iter().any(|why| matches!(why, Reason::Failed(_)));
        self.status.progress.filter(|_| !has_failed)
    }

    /// What is known of other proxies by what it has told.
    pub(super) fn others(&self, now: Instant) -> OtherProxies {
        match self.others_told {
            Some(told) if now - told >= ALONE => {
                OtherProxies::Unknown("no server has told of late whether another proxy uses it".into())
            }
            _ => self.others.clone(),
        }
    }

    pub(super) fn note(&mut self, answer: Answer, is_writer: bool, settings: &OneWriter) {
        match answer {
            Answer::Status(status) => {
                let is_donor = status.is_donor && !settings.donors;
                self.why_not.clone_from(&status.why_not);
                self.why_not.extend(is_donor.then_some(Reason::Donor));
                if self.status.cluster != status.cluster {
                    // What it has proved was that it had the writes of that cluster.
                    self.proofs = 0;
                }
                self.status = status;
            }
            Answer::Failed(why) => self.why_not = vec![Reason::Failed(why)],
            Answer::Others(others) => {
                self.others = others;
                self.others_told = self.others_asked;
            }
            Answer::Proof(true) if self.why_not.is_empty() => self.proofs = self.proofs.saturating_add(1),
            // It may be cut off, and whatever waits there waits as long. The writer waits for nobody: a
            // change of a table holds it up.
            Answer::Late if !is_writer => self.proofs = 0,
            Answer::Proof(_) | Answer::Late => {}
        }
        if !self.why_not.is_empty() {
            self.proofs = 0;
        }
    }

    /// Takes the role that it has where this server is the writer, and takes writes now if it `is_taking`
    /// them.
    pub(super) fn take_role(&mut self, writer: u32, is_taking: bool, now: Instant) {
        let is_writer = self.number == writer;
        let role = match self.serves() || is_writer && is_taking {
            true if is_writer => Role::Writer,
            true => Role::Reader,
            false => Role::Out,
        };
        if self.role.is_none_or(|(before, _)| before != role) {
            self.role = Some((role, now));
        }
        let is_able = self.is_free_to_write() && self.is_up;
        self.able_since = self.able_since.or(Some(now)).filter(|_| is_able);
    }
}
