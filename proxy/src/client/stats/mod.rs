//! What a protocol's own command for statistics answers: a file for each protocol that has one.

mod memcache;
mod tally;

pub(super) use self::tally::Tally;
