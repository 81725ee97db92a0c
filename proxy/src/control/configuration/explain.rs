//! Explains where a request goes by the running configuration.

use std::net::IpAddr;

use super::Configuration;
use crate::{
    control::{Proxy, unix_now},
    route::{self, Asker, Example, ExplainError, Explained},
};

impl Proxy {
    /// Explains the route of a request that enters by listener number `listener`, from a client at this
    /// address.
    ///
    /// # Errors
    /// The text is no request.
    pub fn explain(
        &self,
        listener: usize,
        example: Example<'_>,
        from: Option<IpAddr>,
    ) -> Result<String, ExplainError> {
        Ok(self.in_words(&self.explained(listener, example, from)?))
    }

    /// What was explained, for operators, with the names that DNS is asked for.
    pub fn in_words(&self, explained: &Explained) -> String {
        let Configuration { loaded, servers, .. } = &self.rooms().configuration;
        explained.to_string() + &self.names.explain(&loaded.config, servers)
    }

    /// The same, step by step.
    ///
    /// # Errors
    /// The text is no request.
    pub fn explained(
        &self,
        listener: usize,
        example: Example<'_>,
        from: Option<IpAddr>,
    ) -> Result<Explained, ExplainError> {
        let rooms = &mut *self.rooms();
        let snapshot = rooms.membership.snapshot();
        let asker = Asker {
            now: Some(self.started.elapsed().into()),
            ..Asker::at(rooms.surroundings.localities(), from, unix_now())
        };
        let Configuration { tree, random, .. } = &mut rooms.configuration;
        route::explain(tree, &snapshot, asker, listener, example, random)
    }
}
