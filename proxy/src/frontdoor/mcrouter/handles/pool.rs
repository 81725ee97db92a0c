//! PoolRoute: one server of a pool, in the wrappers that its keys ask for.

use super::{
    Args,
    hash::{self, Choice},
    leaf, limit,
    shadow::{self, Shadowing},
    split,
    steps::SlowWarmUp,
};
use crate::{
    config::{
        Diagnostic,
        reading::Reading,
        routes,
        schema::{Algorithm, Children, Hash, Leaf, Route},
    },
    frontdoor::mcrouter::{
        builder::{Builder, BuiltHandles},
        object::{list, number, whole as number_from},
    },
};

/// Keys that would change where requests go, or whether they do.
const UNSERVED: [&str; 1] = ["bucketize"];
/// Keys of features that do not exist here.
const IDLE: [&str; 2] = ["shadow_policy", "split_shard_fanout"];

/// The pool, and its name.
pub(super) fn pool(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<(BuiltHandles, String), Diagnostic> {
    let (route, name) = whole(builder, args, cx)?;
    args.finish(&UNSERVED, &IDLE, cx)?;
    Ok((BuiltHandles::One(route), name))
}

/// The pool with all that stands around it, and its name.
pub(super) fn whole(
    builder: &mut Builder,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<(Route, String), Diagnostic> {
    let name = leaf::pool_name(builder, args, cx)?;
    let mut own = args.take("hash", cx, hash::read)?;
    // Weights beside the hash belong to the hash.
    if let Some(weights) = args.take("weights", cx, list(number))? {
        let choice = own.unwrap_or(Choice::Hash(Hash::of(Algorithm::WeightedCh3)));
        own = Some(choice.or_weights(weights));
    }
    let around = ServerWrapping {
        most: args.take("max_outstanding", cx, number_from(0))?.unwrap_or(0),
        warm_up: args.take("slow_warmup", cx, |node, cx| SlowWarmUp::read(builder, node, cx))?,
        shadows: shadow::of(builder, args, cx)?,
    };
    let rates = args.take("rates", cx, limit::rates)?;
    let splits = args.take("shard_splits", cx, split::splits)?;
    let mut route = chosen(builder, args, &name, own, &around, cx)?;
    if let Some(rates) = rates.filter(|rates| *rates != routes::RateLimit::default()) {
        route = Route::pair(rates, route, Route::Leaf(Leaf::OverLimit));
    }
    if let Some(splits) = splits.filter(|splits| !splits.is_empty() && builder.splits_shards) {
        route = Route::one(routes::ShardSplit { splits }, route);
    }
    Ok((route, name))
}

/// The wrappers around each server of a pool.
struct ServerWrapping {
    /// The most requests under way; 0: no limit.
    most: i32,
    warm_up: Option<SlowWarmUp>,
    shadows: Vec<Shadowing>,
}

impl ServerWrapping {
    /// Does the same stand around every server?
    fn is_uniform(&self) -> bool {
        self.most == 0 && self.warm_up.is_none() && self.shadows.iter().all(|shadow| shadow.range.is_none())
    }

    fn server(&self, place: usize, server: Route) -> Route {
        let limited = match self.most {
            0 => server,
            most => Route::one(
                routes::OutstandingLimit {
                    most: most.unsigned_abs() as usize,
                    queue: None,
                },
                server,
            ),
        };
        let warmed = match &self.warm_up {
            Some(warm_up) => warm_up.around(limited),
            None => limited,
        };
        shadow::around(warmed, Some(place), &self.shadows)
    }
}

/// One of the pool's servers, by the hash of the route or by the pool's own.
fn chosen(
    builder: &mut Builder,
    args: &Args<'_>,
    name: &str,
    own: Option<Choice>,
    around: &ServerWrapping,
    cx: &mut Reading,
) -> Result<Route, Diagnostic> {
    let Some(pool) = builder.pools.listed.get(name).cloned() else {
        return Err(cx.refuse(args.at, "there is no such pool"));
    };
    let Some(built) = builder.children_of(name, cx)? else {
        return Ok(match pool.error_on_empty {
            true => Route::Leaf(Leaf::Error(
                format!("HashRoute with empty children, name: {name}").into(),
            )),
            false => Route::Leaf(Leaf::Null),
        });
    };
    if let (true, true, BuiltHandles::Members(name)) = (own.is_none(), around.is_uniform(), &built) {
        return Ok(shadow::around(
            Route::Leaf(Leaf::Pool(name.clone())),
            None,
            &around.shadows,
        ));
    }
    let children = match around.is_uniform() {
        true => built.children(),
        false => {
            let servers = builder.list_of(built).into_iter().enumerate();
            Children::List(
                servers
                    .map(|(place, server)| around.server(place, server))
                    .collect(),
            )
        }
    };
    let mut choice = own.unwrap_or(Choice::Hash(pool.pool.hash.clone()));
    if let Some(weights) = pool.weights {
        choice = choice.or_weights(weights);
    }
    if let Some(tags) = pool.tags {
        choice = choice.or_tags(tags);
    }
    let count = builder.count(&children);
    let route = hash::over(choice, children, count, args.at, cx)?;
    Ok(match around.is_uniform() {
        true => shadow::around(route, None, &around.shadows),
        false => route,
    })
}
