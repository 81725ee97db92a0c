//! Names that are nothing's name.

use crate::config::{
    Complaint,
    document::shortened,
    reading::{Index, Kind, Mention, Reading},
    schema::{Config, Source},
    suggest,
};

/// All mentions of what does not exist.
pub(super) fn unknown(config: &Config, index: &Index) -> Vec<Complaint> {
    index
        .mentions
        .iter()
        .filter_map(|mention| nothing(config, mention))
        .collect()
}

/// The same where the configuration could not be read as a whole: only names that stand nowhere are told.
pub(in crate::config) fn unknown_names(index: &Index) -> Vec<Complaint> {
    let Some(names) = &index.names else {
        return Vec::new();
    };
    let known = || names.iter().map(String::as_str).chain(["embedded", "null"]);
    let unknown =
        |mention: &&Mention| mention.kind != Kind::Member && !known().any(|name| name == mention.name);
    let complain = |mention: &Mention| {
        let what = match mention.kind {
            Kind::Pool => "pool",
            _ => "route or pool",
        };
        Complaint {
            remedy: suggest::remedy(&mention.name, known()),
            ..mention
                .site
                .refuse(format!("there is no {what} `{}`", shortened(&mention.name)))
        }
    };
    index.mentions.iter().filter(unknown).map(complain).collect()
}

/// A route and a pool of one name: which one is meant depends on the place, which few expect.
pub(in crate::config) fn warn_of_both(config: &Config, cx: &mut Reading) {
    let both = cx
        .index
        .routes
        .iter()
        .filter(|(name, _)| config.pools.contains_key(*name));
    let warnings: Vec<Complaint> = both
        .map(|(name, site)| {
            site.refuse(format!(
                "a pool is called `{}`, too: as a route the name means this route, as children the pool's servers",
                shortened(name)
            ))
        })
        .collect();
    cx.warnings.extend(warnings);
}

fn nothing(config: &Config, mention: &Mention) -> Option<Complaint> {
    let Mention { site, name, kind } = mention;
    let shown = shortened(name);
    let refuse = |problem: String, remedy| {
        Some(Complaint {
            remedy,
            ..site.refuse(problem)
        })
    };
    let pools = || config.pools.keys().map(String::as_str);
    match kind {
        Kind::Pool if config.pools.contains_key(name) => None,
        Kind::Pool if config.routes.contains_key(name) => refuse(
            format!("`{shown}` is a route, not a pool"),
            Some(format!("for one route write `[{shown}]`")),
        ),
        Kind::Pool => refuse(
            format!("there is no pool `{shown}`"),
            suggest::remedy(name, pools()),
        ),
        Kind::RouteOrPool if config.routes.contains_key(name) || config.pools.contains_key(name) => None,
        Kind::RouteOrPool => {
            let known = config
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
            let Some(found) = config.pools.get(pool) else {
                return refuse(
                    format!("there is no pool `{}`", shortened(pool)),
                    suggest::remedy(pool, pools()),
                );
            };
            let servers = match &found.source {
                Source::Static(servers) => servers,
                Source::File(_) => return None,
                // It could go at any moment, and the tree with it.
                Source::Dns(_) => {
                    return refuse(
                        format!("the servers of `{}` come and go with DNS", shortened(pool)),
                        Some("name the pool, or the server's own address".to_owned()),
                    );
                }
            };
            let known = servers
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
