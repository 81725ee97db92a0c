//! The causes for which a peer leaves.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Why a peer leaves the view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// It has said goodbye.
    Goodbye,
    /// The leader has heard nothing of it for longer than a lease lasts.
    LeaseEnded,
    /// Changes between it and these peers are not answered in time.
    Unanswered(Vec<String>),
    /// Its process has ended without a goodbye, and another one has started in the same directory.
    Restarted,
    /// An operator has removed it.
    Operator,
}

impl Cause {
    /// The labels of metrics, in the order of [`number`](Self::number).
    pub const LABELS: [&str; 5] = ["goodbye", "lease", "unanswered", "restarted", "operator"];

    /// The position of its label.
    pub fn number(&self) -> usize {
        match self {
            Self::Goodbye => 0,
            Self::LeaseEnded => 1,
            Self::Unanswered(_) => 2,
            Self::Restarted => 3,
            Self::Operator => 4,
        }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Goodbye => f.write_str("goodbye"),
            Self::LeaseEnded => f.write_str("its lease has ended: nothing is heard of it"),
            Self::Unanswered(others) => {
                let others = others.join(", ");
                write!(f, "changes between it and {others} are not answered in time")
            }
            Self::Restarted => f.write_str("its process has ended, and another one has started"),
            Self::Operator => f.write_str("an operator has removed it"),
        }
    }
}
