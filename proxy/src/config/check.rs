//! What only the whole configuration can tell, for every front door.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::SocketAddr,
};

use super::{
    Complaint,
    document::shortened,
    reading::{Index, Kind, Mention, Site},
    schema::{Children, Config, Route, Source},
    suggest,
};

/// All complaints about `config`, in the order of the text. `index` says where things stand.
pub(super) fn check(config: &Config, index: &Index) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    complaints.extend(
        index
            .mentions
            .iter()
            .filter_map(|mention| unknown(config, mention)),
    );
    complaints.extend(cycles(config, index));
    complaints.extend(lengths(config, index));
    complaints.extend(listeners(config, index));
    complaints.sort_by_key(|complaint| complaint.at);
    complaints
}

/// A name that is nothing's name.
fn unknown(config: &Config, mention: &Mention) -> Option<Complaint> {
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
            let Source::Static(servers) = &found.source else {
                return None;
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

/// Named routes that lead back to themselves.
fn cycles(config: &Config, index: &Index) -> Vec<Complaint> {
    let named: BTreeMap<&str, BTreeSet<&str>> = config
        .routes
        .iter()
        .map(|(name, route)| (name.as_str(), names(route)))
        .collect();
    let mut finished = BTreeSet::new();
    let mut complaints = Vec::new();
    for start in named.keys().copied() {
        // The way from `start`, each with the names that are still to be followed.
        let mut way = vec![(start, names_of(&named, start))];
        while let Some((at, next)) = way.last_mut() {
            let (at, next) = (*at, next.pop());
            let Some(next) = next else {
                finished.insert(at);
                way.pop();
                continue;
            };
            if let Some(back) = way.iter().position(|(name, _)| *name == next) {
                let circle: Vec<&str> = way[back..].iter().map(|(name, _)| *name).chain([next]).collect();
                let problem = format!("the route leads back to itself: {}", circle.join(" → "));
                let complaint = match index.routes.get(next) {
                    Some(site) => site.refuse(problem),
                    None => Complaint::whole(problem),
                };
                complaints.push(complaint.with_remedy("let one of them go elsewhere"));
                finished.insert(next);
            } else if named.contains_key(next) && !finished.contains(next) {
                way.push((next, names_of(&named, next)));
            }
        }
    }
    complaints
}

fn names_of<'a>(named: &BTreeMap<&'a str, BTreeSet<&'a str>>, name: &str) -> Vec<&'a str> {
    named.get(name).into_iter().flatten().copied().collect()
}

/// The names that stand anywhere in a route.
fn names(route: &Route) -> BTreeSet<&str> {
    let mut out = BTreeSet::new();
    let mut rest = vec![route];
    while let Some(route) = rest.pop() {
        if let Route::Named(name) = route {
            out.insert(name.as_str());
        }
        rest.extend(route.children());
    }
    out
}

/// Lists that are not as long as there are children.
fn lengths(config: &Config, index: &Index) -> Vec<Complaint> {
    let wrong = index.lengths.iter().filter_map(|length| {
        let children = match &length.children {
            Children::List(routes) => routes.len(),
            Children::Pool(name) => match &config.pools.get(name)?.source {
                Source::Static(servers) => servers.len(),
                Source::File(_) => return None,
            },
        };
        let problem = format!("a list of {} for {children} children", length.found);
        (length.found != children).then(|| length.site.refuse(problem).with_remedy("give one for each child"))
    });
    wrong.collect()
}

/// Addresses that cannot both be listened on.
fn listeners(config: &Config, index: &Index) -> Vec<Complaint> {
    let addresses = config
        .listeners
        .iter()
        .map(|listener| listener.address.as_str())
        .chain(config.admin.as_deref());
    let sites = index.listeners.iter().chain(index.admin.as_ref());
    let all: Vec<(&str, &Site)> = addresses.zip(sites).collect();
    let taken = all.iter().enumerate().filter_map(|(i, (address, site))| {
        let (other, other_site) = all[..i].iter().find(|(other, _)| collide(address, other))?;
        let problem = format!("`{address}` is taken by `{other}` in line {}", other_site.at.line);
        Some(site.refuse(problem).with_remedy("choose another port"))
    });
    taken.collect()
}

fn collide(one: &str, other: &str) -> bool {
    match (one.parse::<SocketAddr>(), other.parse::<SocketAddr>()) {
        (Ok(one), Ok(other)) => {
            let wildcard = one.ip().is_unspecified() || other.ip().is_unspecified();
            let dual = [one, other]
                .iter()
                .any(|a| a.is_ipv6() && a.ip().is_unspecified());
            one.port() == other.port()
                && one.port() != 0
                && (one.ip() == other.ip() || (wildcard && (dual || one.is_ipv4() == other.is_ipv4())))
        }
        _ => one == other,
    }
}
