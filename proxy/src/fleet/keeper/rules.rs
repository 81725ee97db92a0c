//! The rules that a model can switch off, to show that it finds the failures that they prevent.

/// The rules; all are on in a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A change is applied only if it is the newest of its key.
    pub stamps: bool,
    /// A peer that leaves has missed the changes that are unconfirmed by then.
    pub doubts_are_missed: bool,
    /// Every keeper records the changes that departed peers miss, not the coordinator alone.
    pub everybody_records_missed: bool,
    /// The keys of changes that a departed coordinator has not finished are deleted.
    pub clean_up: bool,
    /// Changes up to the floor are not stored.
    pub floor: bool,
    /// A joining peer stores nothing before it has its floor.
    pub no_floor_deletes: bool,
    /// An acknowledgement counts for one stay only: a peer that joins again is sent the changes under way.
    pub stays: bool,
    /// A keeper refuses a plain change that is older than a decided one.
    pub decided: bool,
    /// A change that a home has left unanswered when it left gets a later stamp.
    pub homes_that_left: bool,
    /// A new home decides only when decisions of others have ended.
    pub settle: bool,
}

impl Rules {
    /// All rules.
    pub const ALL: Self = Self {
        stamps: true,
        doubts_are_missed: true,
        everybody_records_missed: true,
        clean_up: true,
        floor: true,
        no_floor_deletes: true,
        stays: true,
        decided: true,
        homes_that_left: true,
        settle: true,
    };
}
