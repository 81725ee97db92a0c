//! Errors of distributions.

use std::fmt;

/// Why a [`Distribution`](super::Distribution) cannot be made of these members. Numbers are positions in the
/// given list.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum DistributionError {
    /// There is no member.
    NoMembers,
    /// There are more than [`MAX_MEMBERS`](super::MAX_MEMBERS).
    TooManyMembers(usize),
    /// A weight that this algorithm cannot use.
    Weight {
        /// The member.
        member: usize,
        /// Its weight.
        weight: f64,
        /// The weights that are allowed.
        expected: &'static str,
    },
    /// The weights add up to 0.
    NoWeight,
    /// The weights add up to more than the algorithm can distinguish.
    TooMuchWeight,
    /// Two members have the same name, and the algorithm distinguishes members by name.
    SameName(usize, usize),
}

impl fmt::Display for DistributionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMembers => f.write_str("there are no members"),
            Self::TooManyMembers(members) => {
                write!(f, "{members} members are more than {}", super::MAX_MEMBERS)
            }
            Self::Weight {
                member,
                weight,
                expected,
            } => {
                write!(
                    f,
                    "the weight of member {member} is {weight} and should be {expected}"
                )
            }
            Self::NoWeight => f.write_str("the weights add up to nothing"),
            Self::TooMuchWeight => f.write_str("the weights add up to too much"),
            Self::SameName(first, second) => write!(f, "members {first} and {second} have the same name"),
        }
    }
}

impl std::error::Error for DistributionError {}
