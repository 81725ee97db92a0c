//! The answers to the statistics command of a protocol. There is a file for each protocol that has one.

mod memcache;
mod redis;
mod tally;

pub(super) use self::tally::Tally;
