//! What may happen in one exploration, and which rules hold.

use proxima::fleet::keeper::Rules;

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// A value of its own is set, through this proxy.
    Set(usize),
    /// The value is increased, at its home.
    Incr,
}

/// How many different proxies, by their numbers, something may happen to.
pub(crate) type Some = &'static [usize];

/// What may happen.
#[derive(Clone, Debug)]
pub(crate) struct Scope {
    /// The peers of the first view.
    pub(crate) peers: Some,
    /// The requests of clients, each of which is made once at most.
    pub(crate) requests: &'static [Request],
    /// So many links may be lost, with all that is under way on them.
    pub(crate) losses: u8,
    /// What is sent on these links, from a coordinator to a keeper, arrives at once, and so does the
    /// answer.
    pub(crate) prompt: &'static [(usize, usize)],
    /// The copies of these proxies answer late.
    pub(crate) late: Some,
    /// These may be removed, as often as `removals` says in all.
    pub(crate) removed: Some,
    /// So many removals may happen, after kills or without.
    pub(crate) removals: u8,
    /// These may be killed, each of them once.
    pub(crate) killed: Some,
    /// These may say goodbye, end in good order, and start again.
    pub(crate) restarted: Some,
    /// So many times in all.
    pub(crate) restarts: u8,
    /// These may join again, each as often as it was removed.
    pub(crate) joins: Some,
    /// These decide in the first view.
    pub(crate) deciders: Some,
    /// These may begin to decide when their copies are read again.
    pub(crate) promoted: Some,
    /// A peer may stop deciding although it stays.
    pub(crate) demoted: Some,
    /// A proxy may miss a view that is followed by another.
    pub(crate) views_are_skipped: bool,
    /// The rules of the keeper.
    pub(crate) rules: Rules,
    /// The rules of those who use it.
    pub(crate) uses: Uses,
}

/// The rules of those who use a keeper.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Uses {
    /// A copy is read with a lease only.
    pub(crate) lease_for_reads: bool,
    /// Nobody is removed while its lease runs.
    pub(crate) lease_is_waited_for: bool,
    /// A change counts in its view only.
    pub(crate) view_of_changes: bool,
    /// A confirmation counts in its view only.
    pub(crate) view_of_confirmations: bool,
    /// Who joins again deletes what it had unconfirmed.
    pub(crate) uncertain_is_deleted: bool,
    /// Who was killed deletes everything.
    pub(crate) flush_after_kill: bool,
    /// A change that lost a race is acknowledged when the copy has the winner.
    pub(crate) winner_is_waited_for: bool,
    /// What was under way to the copy when a stay ended is over before the copy is repaired; its decisions
    /// are void.
    pub(crate) late_writes_end: bool,
    /// Every keeper refuses a set that is older than a decision, not the key's home alone.
    pub(crate) everybody_refuses: bool,
    /// Who has no floor yet coordinates nothing.
    pub(crate) floor_before_changes: bool,
}

impl Scope {
    /// Nothing happens, by all rules.
    pub(crate) const NOTHING: Self = Self {
        peers: &[0, 1, 2],
        requests: &[],
        losses: 0,
        prompt: &[],
        late: &[],
        removed: &[],
        removals: 0,
        killed: &[],
        restarted: &[],
        restarts: 0,
        joins: &[],
        deciders: &[0, 1, 2],
        promoted: &[],
        demoted: &[],
        views_are_skipped: false,
        rules: Rules::ALL,
        uses: Uses {
            lease_for_reads: true,
            lease_is_waited_for: true,
            view_of_changes: true,
            view_of_confirmations: true,
            uncertain_is_deleted: true,
            flush_after_kill: true,
            winner_is_waited_for: true,
            late_writes_end: true,
            everybody_refuses: true,
            floor_before_changes: true,
        },
    };

    /// Two write at once.
    pub(crate) const TWO_SETS: Self = Self {
        requests: &[Request::Set(0), Request::Set(1)],
        ..Self::NOTHING
    };

    /// A reader is removed and returns.
    pub(crate) const REMOVED: Self = Self {
        requests: &[Request::Set(0)],
        removed: &[2],
        removals: 1,
        joins: &[2],
        ..Self::NOTHING
    };

    /// The writer is removed and returns.
    pub(crate) const WRITER_REMOVED: Self = Self {
        removed: &[0],
        joins: &[0],
        ..Self::REMOVED
    };

    /// The writer is killed and starts again.
    pub(crate) const WRITER_KILLED: Self = Self {
        removed: &[],
        killed: &[0],
        ..Self::WRITER_REMOVED
    };

    /// The home moves from `b` to `a`.
    pub(crate) const HOME_MOVED: Self = Self {
        peers: &[0, 1],
        deciders: &[1],
        promoted: &[0],
        ..Self::NOTHING
    };

    /// May views follow each other?
    pub(crate) fn has_views(&self) -> bool {
        self.removals > 0 || !self.killed.is_empty() || !self.promoted.is_empty() || !self.demoted.is_empty()
    }
}
