//! The reasons why a server serves nobody.

use std::fmt;

/// One such reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reason {
    /// It has not answered yet.
    Unknown,
    /// It could not be asked, or has answered with this error.
    Failed(String),
    /// It says nothing of a cluster.
    NoGalera,
    /// Its part of the cluster has no majority.
    NotPrimary,
    /// It does not have what the others have.
    NotSynced,
    /// It says that it is not ready.
    NotReady,
    /// It belongs to another cluster than the writer, and has none of its writes.
    OtherCluster,
    /// An operator has it reject queries.
    RejectsQueries,
    /// An operator maintains it.
    Maintenance,
    /// It brings another one up to date.
    Donor,
    /// It says that all is well, and has not proved it.
    Unproven,
    /// The proxy asks it nothing: it has failed, or an operator has ordered it.
    Down,
}

impl Reason {
    /// Its word in metrics.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Failed(_) => "failed",
            Self::NoGalera => "no_galera",
            Self::NotPrimary => "not_primary",
            Self::NotSynced => "not_synced",
            Self::NotReady => "not_ready",
            Self::OtherCluster => "other_cluster",
            Self::RejectsQueries => "rejects_queries",
            Self::Maintenance => "maintenance",
            Self::Donor => "donor",
            Self::Unproven => "unproven",
            Self::Down => "down",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unknown => "it has not answered yet",
            Self::Failed(why) => why,
            Self::NoGalera => "it tells no state: is it a server of a Galera cluster?",
            Self::NotPrimary => "its part of the cluster is not the primary one",
            Self::NotSynced => "it is not synced",
            Self::NotReady => "it is not ready",
            Self::OtherCluster => "it belongs to another cluster than the writer",
            Self::RejectsQueries => "it rejects queries",
            Self::Maintenance => "it is in maintenance",
            Self::Donor => "it brings another server up to date",
            Self::Unproven => "it has not yet waited for the other servers twice",
            Self::Down => "it is ejected, or drains",
        })
    }
}

/// These reasons in one sentence.
pub(super) fn said(reasons: &[Reason]) -> String {
    let said: Vec<String> = reasons.iter().map(Reason::to_string).collect();
    said.join(", ")
}
