//! How fresh reads are, as the configuration says it, in the words of the protocol.

use crate::{
    config::{
        routes::One,
        schema::{self, Config, OfLogin, Route},
    },
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

/// How fresh reads are by this route and those below it.
pub(super) fn by_login(config: &Config, route: &Route) -> ConsistencyByLogin {
    let found = below(config, route, &ConsistencyByLogin::Unsaid);
    match found.is_unsaid() {
        true => ConsistencyByLogin::Unsaid,
        false => found,
    }
}

/// The same, where the routes above this one have said so much.
fn below(config: &Config, route: &Route, said: &ConsistencyByLogin) -> ConsistencyByLogin {
    match route {
        Route::Named(name) => match config.routes.get(name) {
            Some(route) => below(config, route, said),
            None => said.clone(),
        },
        Route::One(One::ConsistencyRoute(own), child) => {
            below(config, child, &ConsistencyByLogin::Said(word(own.word)))
        }
        Route::Keyed(keyed, children, default) => match keyed.of_login() {
            Some(of) => {
                let child = |route: &Route| below(config, route, said);
                let names = children.iter();
                let names = names.map(|(name, route)| (name.as_bytes().into(), child(route)));
                let (names, default) = (names.collect(), default.as_deref().map(child).unwrap_or_default());
                match of {
                    OfLogin::User => ConsistencyByLogin::ByUser(names, default.into()),
                    OfLogin::Schema => ConsistencyByLogin::BySchema(names, default.into()),
                }
            }
            None => said.clone(),
        },
        _ => said.clone(),
    }
}
