//! Pools of copies whose rule cannot be kept, or surprises.

use crate::config::{
    Complaint,
    reading::{Index, Reading},
    schema::{Children, Config, Replicated, Route, Source},
};

/// A rule that no write can fulfil, and routes that write to some copies and tell nobody.
pub(in crate::config) fn unkept(config: &Config, index: &Index) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (name, pool) in &config.pools {
        let (Some(replicated), Source::Static(servers)) = (&pool.replicated, &pool.source) else {
            continue;
        };
        let wanted = replicated.min_acks.unwrap_or(0) as usize;
        if wanted > servers.len() {
            let problem = format!(
                "`min_acks: {wanted}` of {} servers: every write would be refused",
                servers.len()
            );
            complaints.extend(index.pools.get(name).map(|site| {
                site.refuse(problem)
                    .with_remedy("ask for as many as there are, or fewer")
            }));
        }
    }
    complaints.extend(half_written(config, index));
    complaints
}

/// Rules that answer before every copy has a write, or write to one of them, would leave copies behind that are read.
fn half_written(config: &Config, index: &Index) -> Vec<Complaint> {
    let is_replicated = |name: &String| {
        config.pools.get(name).is_some_and(|pool| {
            pool.replicated
                .is_some_and(|replicated| replicated.decide_at_home)
        })
    };
    let mut complaints = Vec::new();
    for (name, route) in &config.routes {
        let mut pending = vec![route];
        while let Some(route) = pending.pop() {
            let over = match route {
                Route::AllMajority(Children::Pool(pool)) => Some(("all_majority", pool)),
                Route::AllFastest(Children::Pool(pool)) => Some(("all_fastest", pool)),
                Route::AllInitial(Children::Pool(pool)) => Some(("all_initial", pool)),
                Route::AllAsync(Children::Pool(pool)) => Some(("all_async", pool)),
                Route::Hash {
                    children: Children::Pool(pool),
                    ..
                } => Some(("hash", pool)),
                _ => None,
            };
            if let Some((handle, pool)) = over.filter(|(_, pool)| is_replicated(pool)) {
                let problem =
                    format!("`{handle}` over `{pool}`, which is replicated, would leave copies behind");
                complaints.extend(index.routes.get(name).map(|site| {
                    site.refuse(problem)
                        .with_remedy("name the pool alone as the route, or use all_sync")
                }));
            }
            pending.extend(route.children());
        }
    }
    complaints
}

/// Two copies of which a majority is asked: the loss of one stops the writes, which few expect.
pub(in crate::config) fn warn_of_two(config: &Config, cx: &mut Reading) {
    for (name, pool) in &config.pools {
        if let (Some(Replicated { min_acks: None, .. }), Source::Static(servers)) =
            (&pool.replicated, &pool.source)
            && servers.len() == 2
            && let Some(at) = cx.index.pools.get(name).map(|site| site.at)
        {
            cx.warn(
                at,
                format!(
                    "pool `{name}` has two copies, and a majority of two is two: while one is down, writes are refused. With \
                     `replicated: {{min_acks: 1}}` they go on"
                ),
            );
        }
    }
}
