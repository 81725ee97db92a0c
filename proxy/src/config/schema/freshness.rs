//! How fresh reads of MySQL are, and who says so.

use super::{Config, Consistency, Listener, Route};
use crate::config::{document::shortened, routes::One};

impl Config {
    /// How fresh reads of MySQL are at this listener, and why: as the route at its top says, as it says
    /// itself, or else as all pools say below it whose servers follow a writer. Where they differ, reads are
    /// `strict`. `None`: there is no such pool, and nobody says anything.
    pub fn consistency_at(&self, listener: &Listener) -> Option<(Consistency, String)> {
        if let [(whose, word)] = &self.consistency_by_routes(&listener.route)[..]
            && whose.is_empty()
        {
            return Some((*word, "its route says so".into()));
        }
        if let Some(word) = listener.door.consistency {
            return Some((word, "the listener says so".into()));
        }
        let pools = self.pools_below(&listener.route);
        let mut writers = pools
            .iter()
            .filter_map(|(name, pool)| Some((*name, pool.one_writer.as_ref()?)));
        let (name, first) = writers.next()?;
        let name = shortened(name);
        Some(match writers.find(|(_, other)| other.word() != first.word()) {
            Some((other, _)) => {
                let why = format!("pools `{name}` and `{}` differ", shortened(other));
                (Consistency::Strict, why)
            }
            None => (first.word(), format!("pool `{name}` {}", first.why())),
        })
    }

    /// How fresh reads are by the routes below this one: whose, in words, and how fresh. Empty words: all
    /// clients'. No circle of routes may lead back to it.
    pub fn consistency_by_routes(&self, route: &Route) -> Vec<(String, Consistency)> {
        let (mut pending, mut found) = (vec![(route, String::new(), None)], Vec::new());
        while let Some((route, whose, word)) = pending.pop() {
            match route {
                Route::Named(name) if self.routes.contains_key(name) => {
                    pending.push((&self.routes[name], whose, word));
                }
                Route::One(One::ConsistencyRoute(said), child) => {
                    pending.push((child, whose, Some(said.word)));
                }
                Route::Keyed(keyed, children, default) if let Some(of) = keyed.of_login() => {
                    let noun = of.noun();
                    let among = |what: String| match whose.is_empty() {
                        true => what,
                        false => format!("{whose}, {what}"),
                    };
                    if let Some(default) = default {
                        pending.push((default, among(format!("other {noun}s")), word));
                    }
                    for (name, child) in children.iter().rev() {
                        let what = format!("{noun} `{}`", shortened(name));
                        pending.push((child, among(what), word));
                    }
                }
                _ => found.extend(word.map(|word| (whose, word))),
            }
        }
        found
    }
}
