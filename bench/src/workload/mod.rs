//! The workload: keys, the values that belong to them, and the order of operations.

mod choice;
mod keys;
pub(crate) mod value;

pub(crate) use choice::{Mix, Operation, Operations, Popularity};
pub(crate) use keys::Keys;
