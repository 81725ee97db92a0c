//! mcrouter's command line and configuration file, as its users write them.

mod bad_configurations;
mod choices;
mod file;
mod flags;
mod handles;
mod limits;
mod macros;
mod node_local;
mod policies;
mod refusals;
#[path = "../../../wire/tests/memcache/rows.rs"]
mod rows;
mod splits;
mod spool;
mod steps;
mod variants;

use proxima::{
    config::{
        routes,
        schema::{Children, Route},
    },
    frontdoor::mcrouter::{Run, Start, StartError, start},
};

pub(crate) fn run(arguments: &[&str]) -> Result<Run, StartError> {
    match start(arguments.iter().map(|argument| (*argument).to_owned()))? {
        Start::Run(run) => Ok(*run),
        Start::Print(text) => panic!("printed {text:?}"),
    }
}

/// The configuration of a text.
pub(crate) fn parse(text: &str) -> Result<Run, StartError> {
    run(&["--port=0", "--asynclog-disable", &format!("--config={text}")])
}

/// A file with this route and the pools `A` of two servers, `B` of one, `E` of none, `W` with weights,
/// `T` with tags, `M` with an error among its servers, and `D` with failure domains.
pub(crate) fn around(route: &str) -> String {
    format!(
        r#"{{"pools": {{
            "A": {{"servers": ["a:1", "a:2"]}},
            "B": {{"servers": ["b:1"]}},
            "E": {{"servers": []}}, "W": {{"servers": ["w:1", "w:2", "w:3"], "weights": [1, 0.25]}},
            "T": {{"servers": ["t:1", "t:2"], "tags": ["x", "y"]}}, "M": {{"servers": ["m:1", "ErrorRoute|m", "m:2"], "weights": [1, 0.5]}},
            "D": {{"servers": ["d:1", "d:2"], "failure_domains": [5, 6]}}
        }}, "named_handles": {{"near": "PoolRoute|B", "all": "AllSyncRoute|Pool|A", "list": "Pool|A"}},
        "route": {route}}}"#
    )
}

pub(crate) fn refused(text: &str) -> String {
    parse(text).expect_err(text).to_string()
}

pub(crate) fn pool(name: &str) -> Children {
    Children::Pool(name.to_owned())
}

/// The route of this name.
pub(crate) fn at<'a>(routes: &'a [(String, Route)], name: &str) -> &'a Route {
    let found = routes.iter().find(|(own, _)| own == name);
    &found.unwrap_or_else(|| panic!("no {name} in {routes:?}")).1
}

pub(crate) fn failover(children: Children) -> Route {
    Route::of(
        routes::Failover {
            rules: Box::default(),
        },
        children,
    )
}
