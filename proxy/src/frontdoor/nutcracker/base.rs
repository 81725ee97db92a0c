//! The base configuration, from the command line: limits, ports of operators and of load balancers, and
//! further listeners.

use std::collections::BTreeMap;

use super::flags::Flags;
use crate::config::{
    document::{Node, shortened},
    reading::{Kind, Reading},
    schema::{Config, Drain, HealthCheck, HealthListener, Limits, Listener, Permissions, ReplyStyle},
};

/// The largest value that a server takes: Redis' limit.
const LARGEST_VALUE: usize = 512 << 20;

/// A configuration without its pools, and what is added when those are known.
#[derive(Debug)]
pub(super) struct BaseConfig {
    pub(super) base: Config,
    flags: Flags,
}

impl BaseConfig {
    /// twemproxy limits neither clients nor values.
    pub(super) fn by(flags: &Flags) -> Self {
        let base = Config {
            workers: flags.workers,
            admin: flags.admin.clone(),
            drain: Drain {
                file: flags.drain_file.clone(),
                delay: flags.drain_delay,
                ..Drain::DEFAULT
            },
            limits: Limits {
                clients: usize::MAX,
                value_bytes: LARGEST_VALUE,
                ..Limits::DEFAULT
            },
            ..Config::default()
        };
        Self {
            base,
            flags: flags.clone(),
        }
    }

    /// Whether the listeners of the file take all commands that Proxima serves.
    pub(super) fn all_commands(&self) -> bool {
        self.flags.all_commands
    }

    /// Adds the listeners that options ask for. The checks look at them as if they stood at the beginning of
    /// the file, `root`.
    pub(super) fn add_listeners(&self, config: &mut Config, root: &Node, cx: &mut Reading) {
        cx.index.has_all_names = true;
        self.flags.tls.apply(config, root, cx);
        for (pool, listen) in &self.flags.also_listen {
            let of_pool = config
                .listeners
                .iter()
                .find(|listener| listener.route.pool() == Some(pool))
                .cloned();
            cx.within("--also-listen", |cx| {
                cx.mention(root.at, Kind::Pool, pool);
                let Some(of_pool) = of_pool else { return };
                cx.index.listeners.push(cx.site(root.at));
                config.listeners.push(Listener {
                    address: listen.address.clone(),
                    permissions: Permissions {
                        mode: listen.mode,
                        owner: None,
                    },
                    reply_style: ReplyStyle::Own,
                    ..of_pool
                });
            });
        }
        if config.admin.is_some() {
            cx.within("--admin", |cx| cx.index.admin = Some(cx.site(root.at)));
        }
        let statistics = (
            self.flags.statistics(),
            cx.within("--stats-port", |cx| cx.site(root.at)),
        );
        cx.index.statistics = Some(statistics);
        self.warn_of_health(config, cx);
        let least = self.least(config, root, cx);
        for (pool, address) in &self.flags.health {
            cx.within("--health", |cx| {
                if let Some(pool) = pool {
                    cx.mention(root.at, Kind::Pool, pool);
                }
                cx.index.health.push(cx.site(root.at));
            });
            let concerns = |name: &String| pool.as_ref().is_none_or(|pool| pool == name);
            config.health.push(HealthListener {
                address: address.clone(),
                check: HealthCheck::Http,
                pools: least
                    .iter()
                    .filter(|(name, _)| concerns(name))
                    .map(|(name, least)| (name.clone(), *least))
                    .collect(),
                allow: self.flags.health_allow.clone(),
            });
        }
    }

    /// Whether a health listener tells of this pool.
    fn has_health(&self, name: &str) -> bool {
        let mut pools = self.flags.health.iter().map(|(pool, _)| pool);
        pools.any(|pool| pool.as_ref().is_none_or(|pool| pool == name))
    }

    /// Warns of pools whose servers a health listener never finds down.
    fn warn_of_health(&self, config: &Config, cx: &mut Reading) {
        for (name, pool) in &config.pools {
            if pool.eject.failures == 0 && self.has_health(name) {
                let at = cx.index.pools[name].at;
                cx.within(&**name, |cx| {
                    cx.warn(
                        at,
                        "without `auto_eject_hosts: true` none of its servers is down for `--health`",
                    );
                });
            }
        }
    }

    /// How many servers of each pool must be up.
    fn least(&self, config: &Config, root: &Node, cx: &mut Reading) -> BTreeMap<String, u32> {
        let mut least: BTreeMap<_, _> = config.pools.keys().map(|name| (name.clone(), 1)).collect();
        // What is said of one pool goes before what is said of all.
        for (pool, number) in &self.flags.health_min {
            if pool.is_none() {
                least.values_mut().for_each(|least| *least = *number);
            }
        }
        for (pool, number) in &self.flags.health_min {
            let Some(pool) = pool else { continue };
            cx.within("--health-min", |cx| cx.mention(root.at, Kind::Pool, pool));
            least.entry(pool.clone()).and_modify(|least| *least = *number);
        }
        for (name, &least) in least.iter().filter(|(name, _)| self.has_health(name)) {
            let at = cx.index.pools[name].at;
            let is_own = |(pool, _): &(Option<String>, u32)| pool.as_ref() == Some(name);
            let remedy = match self.flags.health_min.iter().any(is_own) {
                true => "lower the number, or list more servers".to_owned(),
                false => format!(
                    "give it a number of its own: `--health-min={}=N`",
                    shortened(name)
                ),
            };
            cx.within("--health-min", |cx| cx.want(at, name, least, remedy));
        }
        least
    }
}
