//! Copies that are no longer in the configuration. For a grace time they stay members, neither read nor
//! written, so that the writes that they miss are recorded. A copy that returns within that time is repaired
//! of these writes alone, and keeps its other values.

use std::{
    collections::{BTreeMap, HashSet},
    time::{Duration, Instant},
};

use proxima_wire::hash::ketama_name;

use crate::{
    config::{
        schema::{Config, Server},
        source::Lists,
    },
    members::Member,
};

/// The most departed copies of one pool that are waited for, as each may come to miss a list of keys. Further
/// ones are dropped at once.
const MOST: usize = 32;

/// The departed copies that are waited for, by pool.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Departed {
    pools: BTreeMap<String, Vec<AwaitedCopy>>,
}

#[derive(Clone, Debug, PartialEq)]
struct AwaitedCopy {
    server: Server,
    until: Instant,
}

impl Departed {
    /// The copies that are waited for after a change. `running` and `before` are the configuration and the
    /// servers until now.
    pub fn after(
        &self,
        (running, before): (&Config, &Lists),
        (wanted, named): (&Config, &Lists),
        now: Instant,
    ) -> Self {
        let grace = |config: &Config, pool: &str| -> Option<Duration> {
            let replicated = config.pools.get(pool)?.replicated?;
            (!replicated.grace.is_zero()).then_some(replicated.grace)
        };
        let mut pools = BTreeMap::new();
        for (pool, named) in named {
            let Some(grace) = grace(wanted, pool).filter(|_| grace(running, pool).is_some()) else {
                continue;
            };
            let named: HashSet<_> = named.iter().map(identity).collect();
            let known = self.pools.get(pool).into_iter().flatten();
            let left = before.get(pool).into_iter().flatten().map(|server| AwaitedCopy {
                server: server.clone(),
                until: now + grace,
            });
            let all: Vec<AwaitedCopy> = known
                .filter(|waiting| waiting.until > now)
                .cloned()
                .chain(left)
                .filter(|waiting| !named.contains(&identity(&waiting.server)))
                .take(MOST)
                .collect();
            if !all.is_empty() {
                pools.insert(pool.clone(), all);
            }
        }
        Self { pools }
    }

    /// The servers that are waited for, by pool.
    pub fn servers(&self) -> Lists {
        let pools = self.pools.iter();
        let servers = |all: &Vec<AwaitedCopy>| all.iter().map(|waiting| waiting.server.clone()).collect();
        pools.map(|(pool, all)| (pool.clone(), servers(all))).collect()
    }

    /// The end of the next grace time; `None` if no copy is waited for.
    pub fn until(&self) -> Option<Instant> {
        self.pools.values().flatten().map(|waiting| waiting.until).min()
    }

    /// Is this member a departed copy?
    pub fn contains(&self, member: &Member) -> bool {
        let pool = self.pools.get(&*member.pool.name).into_iter().flatten();
        pool.map(|waiting| &waiting.server)
            .any(|server| identity(server) == (&*member.address, &*member.name))
    }
}

/// The name and the address of a server of a pool in the configuration.
fn identity(server: &Server) -> (&str, &str) {
    let name = ketama_name(&server.address, server.name.as_deref());
    (&server.address, name)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config;

    fn config(grace: &str) -> Config {
        let text = format!(
            "listeners: [{{address: '127.0.0.1:1', route: cache}}]\n\
             pools: {{cache: {{servers: ['a:1'], replicated: {grace}}}}}"
        );
        config::parse(&text, Path::new("test")).unwrap().config
    }

    fn servers(addresses: &[&str]) -> Lists {
        let server = |address: &&str| Server {
            address: (*address).to_owned(),
            name: None,
            weight: 1.0,
            zone: None,
            pod: None,
        };
        [("cache".to_owned(), addresses.iter().map(server).collect())].into()
    }

    fn waited_for(departed: &Departed) -> Vec<String> {
        let all = departed.servers().into_values().flatten();
        all.map(|server| server.address).collect()
    }

    #[test]
    fn departed_copy_is_waited_for_until_it_returns_or_its_grace_ends() {
        let (config, now) = (config("{grace: 10s}"), Instant::now());
        let (two, one) = (servers(&["a:1", "b:1"]), servers(&["a:1"]));
        let none = Departed::default();
        let left = none.after((&config, &two), (&config, &one), now);
        assert_eq!(waited_for(&left), ["b:1"]);
        assert_eq!(left.until(), Some(now + Duration::from_secs(10)));
        let later = now + Duration::from_secs(9);
        assert_eq!(
            left.after((&config, &one), (&config, &one), later),
            left,
            "nothing has changed"
        );
        assert_eq!(
            left.after((&config, &one), (&config, &two), later),
            none,
            "it has returned"
        );
        let end = now + Duration::from_secs(10);
        assert_eq!(left.after((&config, &one), (&config, &one), end), none);
    }

    #[test]
    fn server_whose_default_name_is_written_has_not_departed() {
        let config = config("true");
        let (before, mut after) = (servers(&["10.0.0.1:11211"]), servers(&["10.0.0.1:11211"]));
        let name = ketama_name("10.0.0.1:11211", None).to_owned();
        after.get_mut("cache").unwrap()[0].name = Some(name);
        let left = Departed::default().after((&config, &before), (&config, &after), Instant::now());
        assert_eq!(left, Departed::default());
    }

    #[test]
    fn departed_server_is_not_waited_for_where_no_write_can_be_missed() {
        let now = Instant::now();
        let (two, one) = (servers(&["a:1", "b:1"]), servers(&["a:1"]));
        for (before, after) in [
            ("false", "true"),
            ("true", "false"),
            ("{grace: 0s}", "{grace: 0s}"),
        ] {
            let (before, after) = (config(before), config(after));
            let left = Departed::default().after((&before, &two), (&after, &one), now);
            assert_eq!(left, Departed::default());
        }
    }

    #[test]
    fn only_so_many_departed_copies_are_waited_for() {
        let (config, now) = (config("true"), Instant::now());
        let addresses: Vec<String> = (0..MOST + 9).map(|n| format!("a:{n}")).collect();
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        let left = Departed::default().after((&config, &servers(&addresses)), (&config, &servers(&[])), now);
        assert_eq!(waited_for(&left), addresses[..MOST]);
    }
}
