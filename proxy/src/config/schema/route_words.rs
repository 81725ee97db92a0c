//! How fresh reads of MySQL are by the routes: a tree by user and schema, which is known before any route
//! looks at a statement.

use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
};

use super::{Config, Consistency, OfLogin, Route};
use crate::config::{document::shortened, routes::One};

/// The most kinds of clients that are told apart where people read it.
const MOST_TOLD: usize = 20;

/// How fresh a client's reads are by the routes that it meets before any that looks at its statements.
#[derive(Debug, Default, PartialEq)]
pub enum RouteWords {
    /// No route says it.
    #[default]
    Unsaid,
    /// A route says it.
    Said(Consistency),
    /// It depends on what a client says of itself: those that are named, and all others.
    By(OfLogin, BTreeMap<Box<[u8]>, Arc<Self>>, Arc<Self>),
}

impl RouteWords {
    /// The word for a client of this user that uses this schema.
    pub fn of(&self, user: &[u8], schema: &[u8]) -> Option<Consistency> {
        let mut found = self;
        loop {
            let (of, names, others) = match found {
                Self::Unsaid => return None,
                Self::Said(word) => return Some(*word),
                Self::By(of, names, others) => (of, names, others),
            };
            let name = match of {
                OfLogin::User => user,
                OfLogin::Schema => schema,
            };
            found = names.get(name).unwrap_or(others);
        }
    }

    /// The word for clients that no route names.
    pub fn of_others(&self) -> Option<Consistency> {
        match self {
            Self::Unsaid => None,
            Self::Said(word) => Some(*word),
            Self::By(_, _, others) => others.of_others(),
        }
    }

    /// The clients of whom a route says something else than of [others](Self::of_others), in words, and how
    /// fresh their reads are. Of many the first ones are told.
    pub fn told(&self) -> Vec<(String, Consistency)> {
        let (others, mut found) = (self.of_others(), Vec::new());
        self.tell("", others, &mut found);
        found
    }

    fn is_same_leaf(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Unsaid, Self::Unsaid) => true,
            (Self::Said(word), Self::Said(other)) => word == other,
            _ => false,
        }
    }

    fn tell(&self, whose: &str, others: Option<Consistency>, found: &mut Vec<(String, Consistency)>) {
        match self {
            _ if found.len() >= MOST_TOLD => {}
            Self::Said(word) if Some(*word) != others => found.push((whose.to_owned(), *word)),
            Self::Unsaid | Self::Said(_) => {}
            Self::By(of, names, rest) => {
                let comma = if whose.is_empty() { "" } else { ", " };
                for (name, child) in names {
                    let name = shortened(&String::from_utf8_lossy(name));
                    child.tell(&format!("{whose}{comma}{} `{name}`", of.noun()), others, found);
                }
                rest.tell(&format!("{whose}{comma}other {}s", of.noun()), others, found);
            }
        }
    }
}

impl Config {
    /// How fresh reads are by this route and those below it. No circle of routes may lead back to it.
    pub fn route_words(&self, route: &Route) -> Arc<RouteWords> {
        let mut reading = Reading {
            config: self,
            named: HashMap::new(),
        };
        reading.words(route, None)
    }
}

/// A look at all routes once for each word that may hold above them, however often they are named.
struct Reading<'a> {
    config: &'a Config,
    named: HashMap<(&'a str, Option<Consistency>), Arc<RouteWords>>,
}

impl<'a> Reading<'a> {
    /// The words below this route, where the routes above it have said this one.
    fn words(&mut self, route: &'a Route, said: Option<Consistency>) -> Arc<RouteWords> {
        match route {
            Route::Named(name) => {
                if let Some(words) = self.named.get(&(name.as_str(), said)) {
                    return Arc::clone(words);
                }
                let words = match self.config.routes.get(name) {
                    Some(route) => self.words(route, said),
                    None => leaf(said),
                };
                self.named.insert((name.as_str(), said), Arc::clone(&words));
                words
            }
            Route::One(One::ConsistencyRoute(own), child) => self.words(child, Some(own.level)),
            Route::Keyed(keyed, children, default) => match keyed.of_login() {
                Some(of) => {
                    let mut names = BTreeMap::new();
                    for (name, route) in children {
                        names.insert(name.as_bytes().into(), self.words(route, said));
                    }
                    let others = match default {
                        Some(route) => self.words(route, said),
                        None => leaf(said),
                    };
                    // A branch that is kept has two words, one of which others do not have.
                    match names.values().all(|words| words.is_same_leaf(&others)) {
                        true => others,
                        false => RouteWords::By(of, names, others).into(),
                    }
                }
                None => leaf(said),
            },
            _ => leaf(said),
        }
    }
}

fn leaf(said: Option<Consistency>) -> Arc<RouteWords> {
    said.map_or(RouteWords::Unsaid, RouteWords::Said).into()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    /// The words of the route `r` in a configuration with these routes.
    fn words(routes: &str) -> Arc<RouteWords> {
        let text = format!(
            "pools:\n  db: {{protocol: mysql, servers: [\"h:1\"], user: u, password_env: HOME, galera: true}}\n\
             routes: {{{routes}}}\n\
             listeners: [{{address: \"127.0.0.1:1\", protocol: mysql, users: server, route: r}}]\n"
        );
        let config = config::parse(&text, Path::new("F")).unwrap().config;
        config.route_words(&config.listeners[0].route)
    }

    const SHOP: &str =
        "s: {by_schema: {schemas: {a: {consistency: {child: db, level: eventual}}}, default: db}}";

    #[test]
    fn the_innermost_route_on_a_clients_way_says_it() {
        use Consistency::{Causal, Eventual, Session};
        let by_user = "by_user: {users: {app: s, other: {consistency: {child: s, level: causal}}}}";
        for (routes, user, schema, word) in [
            ("r: db".to_owned(), "app", "a", None),
            (format!("r: s, {SHOP}"), "app", "a", Some(Eventual)),
            (format!("r: s, {SHOP}"), "app", "b", None),
            (format!("r: s, {SHOP}"), "app", "", None),
            (
                format!("r: {{consistency: {{child: s, level: session}}}}, {SHOP}"),
                "app",
                "a",
                Some(Eventual),
            ),
            (
                format!("r: {{consistency: {{child: s, level: session}}}}, {SHOP}"),
                "app",
                "b",
                Some(Session),
            ),
            (format!("r: {{{by_user}}}, {SHOP}"), "app", "a", Some(Eventual)),
            (format!("r: {{{by_user}}}, {SHOP}"), "other", "b", Some(Causal)),
            (format!("r: {{{by_user}}}, {SHOP}"), "nobody", "a", None),
        ] {
            assert_eq!(
                words(&routes).of(user.as_bytes(), schema.as_bytes()),
                word,
                "{routes} {user} {schema}"
            );
        }
    }

    #[test]
    fn what_holds_for_all_others_is_told_once() {
        let told = |routes: &str| {
            let words = words(routes);
            let told = words
                .told()
                .into_iter()
                .map(|(whose, word)| format!("{whose}: {}", word.name()));
            (words.of_others(), told.collect::<Vec<_>>())
        };
        let session = Some(Consistency::Session);
        assert_eq!(told("r: db"), (None, vec![]));
        assert_eq!(
            told("r: {consistency: {child: db, level: session}}"),
            (session, vec![])
        );
        let inner = format!("r: {{consistency: {{child: s, level: session}}}}, {SHOP}");
        assert_eq!(told(&inner), (session, vec!["schema `a`: eventual".into()]));
        let unsaid = "r: {by_user: {users: {app: s}, default: db}}";
        assert_eq!(
            told(&format!("{unsaid}, {SHOP}")),
            (None, vec!["user `app`, schema `a`: eventual".into()])
        );
    }

    #[test]
    fn routes_that_are_named_again_and_again_are_looked_at_once() {
        let mut routes = String::from("r: r0");
        for number in 0..25 {
            let next = number + 1;
            let both = format!("{{schemas: {{a: r{next}, b: r{next}}}, default: r{next}}}");
            routes += &format!(", r{number}: {{by_schema: {both}}}");
        }
        for last in ["db", "{consistency: {child: db, level: eventual}}"] {
            let words = words(&format!("{routes}, r25: {last}"));
            assert_eq!(words.told(), vec![], "{last}");
        }
        let some = "{by_user: {users: {app: {consistency: {child: db, level: eventual}}}, default: db}}";
        let words = words(&format!("{routes}, r25: {some}"));
        assert_eq!(words.told().len(), MOST_TOLD);
    }
}
