//! How fresh reads are, as the configuration says it, in the words of the protocol.

use crate::{
    config::schema::{self, RouteWords},
    protocol::{Consistency, ConsistencyByLogin},
};

/// The word of the protocol.
pub(super) const fn word(said: schema::Consistency) -> Consistency {
    match said {
        schema::Consistency::Strict => Consistency::Strict,
        schema::Consistency::Causal => Consistency::Causal,
        schema::Consistency::Session => Consistency::Session,
        schema::Consistency::Eventual => Consistency::Eventual,
    }
}

impl ConsistencyByLogin for RouteWords {
    fn of(&self, user: &[u8], schema: &[u8]) -> Option<Consistency> {
        self.of(user, schema).map(word)
    }
}
