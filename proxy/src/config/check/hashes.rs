//! Checks of hashes: they can share keys out among what they are given.

use proxima_wire::hash::{DistributionError, Node};

use crate::config::{
    Diagnostic, distribution,
    reading::{Index, Siblings, Site},
    routes::{ByHash, Of},
    schema::{Children, Config, Hash, Route, Server},
};

/// Refuses lists that are not as long as there are children.
pub(super) fn lengths(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let wrong = index.lengths.iter().filter_map(|length| {
        let children = match &length.children {
            Siblings::Routes(count) => *count,
            Siblings::Pool(name) => {
                let source = &config.pools.get(name)?.source;
                if let Some(question) = source.question() {
                    let asked = question.asked();
                    let problem =
                        format!("a list for the servers that {asked} names, however many those are");
                    return Some(length.site.refuse(problem).with_remedy("leave it out"));
                }
                source.fixed()?.len()
            }
        };
        let children = children.saturating_sub(length.without);
        let problem = format!("a list of {} for {children} children", length.found);
        (length.found != children).then(|| length.site.refuse(problem).with_remedy("give one for each child"))
    });
    wrong.collect()
}

/// Refuses pools and hash routes whose weights or names their algorithm cannot use.
pub(super) fn unusable(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let complain = |site: Option<&Site>, path: String, problem: String| match site {
        Some(site) => site.refuse(problem),
        None => Diagnostic {
            path,
            ..Diagnostic::whole(problem)
        },
    };
    let pools = config.pools.iter().filter_map(|(name, pool)| {
        let problem = shared_out(&pool.hash, pool.source.fixed()?).err()?;
        let problem = problem.to_string();
        Some(complain(index.pools.get(name), format!("pools.{name}"), problem))
    });
    let named = config
        .routes
        .iter()
        .map(|(name, route)| (index.routes.get(name), format!("routes.{name}"), route));
    let entered = config.listeners.iter().enumerate().map(|(i, listener)| {
        (
            index.listeners.get(i),
            format!("listeners[{i}].route"),
            &listener.route,
        )
    });
    let routes = named.chain(entered).filter_map(|(site, path, route)| {
        let problem = hashes(route)
            .into_iter()
            .find_map(|(children, hash)| usable(config, children, hash).err())?;
        Some(complain(site, path, problem.to_string()))
    });
    pools.chain(routes).collect()
}

/// A hash does not fit the number, names or weights of what it chooses from. The operator has to correct one
/// of them.
#[derive(Debug, thiserror::Error)]
#[error("this hash cannot be used: {0}")]
pub(in crate::config) struct UnusableHash(#[from] DistributionError);

/// Checks that `hash` can share keys out among `servers`.
pub(in crate::config) fn shared_out(hash: &Hash, servers: &[Server]) -> Result<(), UnusableHash> {
    let names = servers
        .iter()
        .map(|server| server.name.as_deref().unwrap_or(&server.address));
    let weights = servers.iter().map(|server| server.weight);
    nodes_shared_out(
        hash,
        names
            .zip(weights)
            .map(|(name, weight)| Node { name, weight })
            .collect(),
    )
}

fn usable(config: &Config, children: &Children, hash: &Hash) -> Result<(), UnusableHash> {
    match children {
        Children::Pool(name) => match config.pools.get(name).and_then(|pool| pool.source.fixed()) {
            Some(servers) => shared_out(hash, servers),
            None => Ok(()),
        },
        Children::List(routes) => {
            let names: Vec<String> = (0..routes.len()).map(|i| format!("child {i}")).collect();
            nodes_shared_out(
                hash,
                names.iter().map(|name| Node { name, weight: 1.0 }).collect(),
            )
        }
    }
}

fn nodes_shared_out<'a>(hash: &'a Hash, mut nodes: Vec<Node<'a>>) -> Result<(), UnusableHash> {
    for (node, tag) in nodes.iter_mut().zip(hash.tags.iter().flatten()) {
        node.name = tag;
    }
    for (node, weight) in nodes.iter_mut().zip(hash.weights.iter().flatten()) {
        node.weight = *weight;
    }
    distribution(hash.algorithm, &nodes)?;
    Ok(())
}

/// The hashes anywhere in a route.
fn hashes(route: &Route) -> Vec<(&Children, &Hash)> {
    let mut found = Vec::new();
    let mut rest = vec![route];
    while let Some(route) = rest.pop() {
        if let Route::Of(Of::ByHash(ByHash { hash: Some(hash) }), children) = route {
            found.push((children, hash));
        }
        rest.extend(route.children());
    }
    found
}
