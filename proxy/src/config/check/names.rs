//! Checks of names: each is the name of something.

use crate::config::{
    Diagnostic,
    document::shortened,
    reading::{Index, Kind, Mention, Reading},
    schema::Config,
    suggest,
};

/// All mentions of names that do not exist. A part with a mistake exists.
pub(super) fn unknown(config: &Config, index: &Index) -> Vec<Diagnostic> {
    if !index.has_all_names {
        return Vec::new();
    }
    index
        .mentions
        .iter()
        .filter_map(|mention| nothing(config, index, mention))
        .collect()
}

/// Warns of a route and a pool with one name. The place decides which of them is meant, which few expect.
pub(in crate::config) fn warn_of_both(config: &Config, cx: &mut Reading) {
    let both = cx
        .index
        .routes
        .iter()
        .filter(|(name, _)| config.pools.contains_key(*name));
    let warnings: Vec<Diagnostic> = both
        .map(|(name, site)| {
            site.refuse(format!(
                "a pool is called `{}`, too: as a route the name means this route, as children the pool's servers",
                shortened(name)
            ))
        })
        .collect();
    cx.warnings.extend(warnings);
}

fn nothing(config: &Config, index: &Index, mention: &Mention) -> Option<Diagnostic> {
    let Mention { site, name, kind } = mention;
    let shown = shortened(name);
    let refuse = |problem: String, remedy| {
        Some(Diagnostic {
            remedy,
            ..site.refuse(problem)
        })
    };
    let pools = || index.pools.keys().map(String::as_str);
    match kind {
        Kind::Pool if index.pools.contains_key(name) => None,
        Kind::Pool if index.routes.contains_key(name) => refuse(
            format!("`{shown}` is a route, not a pool"),
            Some(format!("for one route write `[{shown}]`")),
        ),
        Kind::Pool => refuse(
            format!("there is no pool `{shown}`"),
            suggest::remedy(name, pools()),
        ),
        Kind::RouteOrPool if index.routes.contains_key(name) || index.pools.contains_key(name) => None,
        Kind::RouteOrPool => {
            let known = index
                .routes
                .keys()
                .map(String::as_str)
                .chain(pools())
                .chain(["embedded", "null"]);
            refuse(
                format!("there is no route or pool `{shown}`"),
                suggest::remedy(name, known),
            )
        }
        Kind::Member => {
            let (pool, server) = name.split_once('/')?;
            if !index.pools.contains_key(pool) {
                return refuse(
                    format!("there is no pool `{}`", shortened(pool)),
                    suggest::remedy(pool, pools()),
                );
            }
            let source = &config.pools.get(pool)?.source;
            if let Some(question) = source.question() {
                // The server could disappear at any moment, and the tree with it.
                let (pool, asked) = (shortened(pool), question.asked());
                return refuse(
                    format!("the servers of `{pool}` come and go with {asked}"),
                    Some("name the pool, or the server's own address".to_owned()),
                );
            }
            let known = source
                .fixed()?
                .iter()
                .map(|server| server.name.as_deref().unwrap_or(&server.address));
            match known.clone().any(|known| known == server) {
                true => None,
                false => refuse(
                    format!(
                        "the pool `{}` has no server `{}`",
                        shortened(pool),
                        shortened(server)
                    ),
                    suggest::remedy(server, known),
                ),
            }
        }
    }
}
