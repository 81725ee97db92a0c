//! mcrouter's route handles, each built as the route that does the same.

mod balanced;
mod failover;
mod gather;
mod hash;
mod latest;
mod leaf;
mod limit;
mod narrow;
mod policy;
mod pool;
mod results;
mod rules;
mod select;
mod shadow;
mod split;
mod spool;
mod steps;
mod wrap;

use super::{
    builder::{Builder, BuiltHandles},
    object::Object,
};
use crate::config::{
    Diagnostic, Place,
    document::{Node, shortened},
    reading::Reading,
    schema::{Children, Leaf, Route},
};

type Build = fn(&mut Builder, &Args<'_>, &mut Reading) -> Result<BuiltHandles, Diagnostic>;

/// The types that are served.
const SERVED: [(&str, Build); 44] = [
    ("NullRoute", leaf::null),
    ("DevNullRoute", leaf::dev_null),
    ("ErrorRoute", leaf::error),
    ("Pool", leaf::members),
    ("PoolRoute", spool::pool),
    ("AsynclogRoute", spool::around),
    ("HashRoute", select::hash),
    ("RandomRoute", select::random),
    ("HostIdRoute", select::host_id),
    ("OriginalClientHashRoute", select::by_client),
    ("LatestRoute", latest::latest),
    ("LoadBalancerRoute", select::load_balancer),
    ("MigrateRoute", split::migrate),
    ("ShardSplitRoute", split::shard_split),
    ("KeySplitRoute", split::key_split),
    ("ShadowRoute", shadow::shadow),
    ("RateLimitRoute", limit::rate_limit),
    ("OutstandingLimitRoute", limit::outstanding_limit),
    ("BlackholeRoute", limit::blackhole),
    ("KeyParseRoute", narrow::key_parse),
    ("HashStopAllowListRoute", narrow::hash_stop),
    ("OperationSelectorRoute", select::by_operation),
    ("PrefixPolicyRoute", select::by_operation),
    ("RoutingGroupRoute", select::by_group),
    ("PrefixSelectorRoute", select::by_prefix),
    ("AllSyncRoute", gather::sync),
    ("AllFastestRoute", gather::fastest),
    ("AllInitialRoute", gather::initial),
    ("AllMajorityRoute", gather::majority),
    ("AllAsyncRoute", gather::asynchronous),
    ("FailoverRoute", failover::failover),
    ("SaltedFailoverRoute", failover::salted),
    ("FailoverWithExptimeRoute", failover::with_exptime),
    ("WarmUpRoute", steps::warm_up),
    ("SlowWarmUpRoute", steps::slow_warm_up),
    ("StagingRoute", steps::staging),
    ("L1L2CacheRoute", steps::l1_l2_cache),
    ("L1L2SizeSplitRoute", steps::size_split),
    ("BigValueRoute", steps::big_value),
    ("MissFailoverRoute", failover::on_miss),
    ("LoggingRoute", wrap::log),
    ("ModifyKeyRoute", wrap::modify_key),
    ("ModifyExptimeRoute", wrap::modify_exptime),
    ("LatencyInjectionRoute", wrap::latency),
];

/// The types that mcrouter knows and that are not served, with the reason.
const REFUSED: [(&str, &str); 6] = [
    ("AxonLogRoute", "it writes to Facebook's Axon"),
    (
        "CarbonLookasideRoute",
        "it keeps replies in a form of Facebook's Carbon protocol",
    ),
    ("DistributionRoute", "it sends through Facebook's Axon"),
    ("McBucketRoute", "buckets are known to Facebook's servers alone"),
    ("SRRoute", "it asks Facebook's ServiceRouter"),
    ("SetDistributionTargetRoute", "it is for DistributionRoute"),
];

/// Builds a handle of type `kind`, which stands at `at`.
pub(super) fn build(
    builder: &mut Builder,
    kind: &str,
    at: Place,
    args: &Args<'_>,
    cx: &mut Reading,
) -> Result<BuiltHandles, Diagnostic> {
    let (line, shown) = (at.line, shortened(kind));
    if let Some((_, build)) = SERVED.iter().find(|(name, _)| *name == kind) {
        return build(builder, args, cx);
    }
    let problem = match REFUSED.iter().find(|(name, _)| *name == kind) {
        Some((_, why)) => format!("{shown} is not served: {why}, line: {line}"),
        // The message is the one that mcrouter's users look for.
        None => format!("Unknown RouteHandle: {shown} line: {line}"),
    };
    Err(cx.refuse(at, problem))
}

/// The arguments of a handle: an object's keys, the text behind `|`, or nothing.
#[derive(Debug)]
pub(super) struct Args<'a> {
    at: Place,
    object: Option<Object<'a>>,
    short: Option<&'a Node>,
}

impl<'a> Args<'a> {
    pub(super) fn short(at: Place, short: Option<&'a Node>) -> Self {
        Self {
            at,
            object: None,
            short,
        }
    }

    pub(super) fn object(object: Object<'a>) -> Self {
        Self {
            at: object.at,
            object: Some(object),
            short: None,
        }
    }

    /// The value of the key that may stand behind `|`.
    fn main(&self, key: &str) -> Option<&'a Node> {
        self.short.or_else(|| self.object.as_ref()?.get(key))
    }

    /// The value of any key.
    fn take<T>(
        &self,
        key: &str,
        cx: &mut Reading,
        read: impl FnOnce(&'a Node, &mut Reading) -> Result<T, Diagnostic>,
    ) -> Result<Option<T>, Diagnostic> {
        self.object
            .as_ref()
            .map_or(Ok(None), |object| object.take(key, cx, read))
    }

    /// The one handle under `key`.
    fn target(&self, builder: &mut Builder, key: &str, cx: &mut Reading) -> Result<Route, Diagnostic> {
        match self.main(key) {
            Some(node) => cx.within(key, |cx| builder.one(node, cx)),
            None => Err(cx.refuse(self.at, format!("`{key}` is missing, line: {}", self.at.line))),
        }
    }

    /// Refuses a handle that has none of these keys.
    fn need(&self, keys: &[&str], handle: &str, cx: &Reading) -> Result<(), Diagnostic> {
        if keys.iter().any(|key| self.main(key).is_some()) {
            return Ok(());
        }
        let what = match keys {
            [key] => format!("`{key}` is missing"),
            keys => format!("neither `{}` is there", keys.join("` nor `")),
        };
        Err(cx.refuse(self.at, format!("{handle}: {what}, line: {}", self.at.line)))
    }

    /// The handles under `children`. `None` without that field.
    fn children(&self, builder: &mut Builder, cx: &mut Reading) -> Result<Option<Children>, Diagnostic> {
        cx.within("children", |cx| builder.children(self.main("children"), cx))
    }

    /// See [`Object::finish`].
    fn finish(&self, unserved: &[&str], idle: &[&str], cx: &mut Reading) -> Result<(), Diagnostic> {
        self.object
            .as_ref()
            .map_or(Ok(()), |object| object.finish(unserved, idle, cx))
    }
}

/// Builds a route over children as mcrouter does: none answer as a null route, and one takes the place of the
/// whole.
fn over(children: Option<Children>, make: impl FnOnce(Children) -> Route) -> BuiltHandles {
    BuiltHandles::One(match children {
        None => Route::Leaf(Leaf::Null),
        Some(Children::List(mut routes)) if routes.len() == 1 => {
            routes.pop().unwrap_or(Route::Leaf(Leaf::Null))
        }
        Some(children) => make(children),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_migrating_names_every_handle() {
        let page = include_str!("../../../../../docs/migrating-from-mcrouter.md");
        let named = |name: &&str| {
            page.split(|c: char| !c.is_alphanumeric())
                .any(|word| word == *name)
        };
        let served = SERVED.iter().map(|(name, _)| *name);
        let refused = REFUSED.iter().map(|(name, _)| *name);
        let missing: Vec<&str> = served.chain(refused).filter(|name| !named(name)).collect();
        assert_eq!(missing, [""; 0]);
    }
}
