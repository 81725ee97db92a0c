//! The steps from one configuration to the next: a pure function of both.
//!
//! Every step that can fail precedes every step that changes what clients see, so that a configuration is
//! refused as a whole. Two parts of a configuration are no steps. DNS is asked before there is a plan, as the
//! plan depends on the answers. The store and the other keys of [`READ_AT_START`] never change while the
//! process runs.

use std::{
    collections::{BTreeMap, BTreeSet},
    net::IpAddr,
};

use crate::{
    config::schema::{Config, Permissions, SocketOptions},
    control::listening::descriptors::Need,
    copies::Departed,
    members::MemberId,
};

/// One side of a change: the running configuration, or the new one.
#[derive(Clone, Debug)]
pub(super) struct Side<'a> {
    /// Differs wherever the configuration's text or a list of servers does.
    pub(super) version: &'a str,
    pub(super) config: &'a Config,
    /// Copies that have left the lists of servers and may return.
    pub(super) departed: &'a Departed,
    /// The addresses of host names.
    pub(super) hosts: &'a BTreeMap<String, IpAddr>,
    /// Members in all, departed copies included.
    pub(super) members: usize,
    /// Those of them that are copies.
    pub(super) copies: BTreeSet<MemberId>,
    /// Clients are accepted. While they are not, no listener is opened.
    pub(super) accepts: bool,
}

/// A listener that the process has, or once had. Its place in the list is its number for as long as the
/// process lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Listener {
    /// The address as configured.
    pub(super) address: String,
    pub(super) is_open: bool,
}

/// One step of a change.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// Bind a new listener. May fail.
    Bind {
        listener: u16,
        address: String,
        permissions: Permissions,
        socket: SocketOptions,
    },
    /// Give the socket file of a listener that stays open its owner and mode. May fail.
    Permit {
        address: String,
        permissions: Permissions,
    },
    /// Warn that a key takes effect with the next start.
    WarnOfRestart(&'static str),
    /// Raise the limit on open files, and admit only as many clients as it leaves room for.
    ProvideDescriptors(Need),
    /// Stop reading these copies in every worker, then stop waiting for them, as they are members no longer.
    RemoveCopies(Vec<MemberId>),
    /// Give every worker its tree, the limits and the listeners to open and to close.
    Exchange { open: Vec<u16>, close: Vec<u16> },
    /// Put the change on record, now that every worker serves by it.
    Record,
}

impl Step {
    /// Whether this step may fail. It can then be undone without a trace.
    pub(super) fn may_fail(&self) -> bool {
        matches!(self, Self::Bind { .. } | Self::Permit { .. })
    }
}

/// The listeners of the process once `config` runs: those that it ever had, then the new ones. A number is
/// never given to another address, as workers and trees know listeners by number.
pub(super) fn numbered<'a>(known: impl Iterator<Item = &'a str>, config: &Config) -> Vec<String> {
    let mut listeners: Vec<String> = known.map(str::to_owned).collect();
    for listener in &config.listeners {
        if !listeners.contains(&listener.address) {
            listeners.push(listener.address.clone());
        }
    }
    listeners
}

/// The steps from `before` to `after`, in order. No step but [`Step::Permit`]: nothing has changed.
///
/// `listeners` are those of the process now. `workers` is the number of worker threads.
pub(super) fn plan(before: &Side<'_>, after: &Side<'_>, listeners: &[Listener], workers: usize) -> Vec<Step> {
    let (mut binds, mut permits) = (Vec::new(), Vec::new());
    let (mut open, mut close) = (Vec::new(), Vec::new());
    let addresses = numbered(listeners.iter().map(|known| &*known.address), after.config);
    for (number, address) in addresses.into_iter().enumerate() {
        let is_open = listeners.get(number).is_some_and(|known| known.is_open);
        let mut wanted = after.config.listeners.iter();
        let wanted = wanted.find(|listener| listener.address == address);
        let listener = number as u16;
        match wanted.map(|wanted| (wanted.permissions.clone(), wanted.socket)) {
            Some((permissions, socket)) if !is_open && after.accepts => {
                open.push(listener);
                binds.push(Step::Bind {
                    listener,
                    address,
                    permissions,
                    socket,
                });
            }
            Some((permissions, _)) if is_open && address.starts_with("unix:") => {
                permits.push(Step::Permit { address, permissions });
            }
            None if is_open => close.push(listener),
            Some(_) | None => {}
        }
    }
    let is_same =
        before.version == after.version && before.departed == after.departed && before.hosts == after.hosts;
    // A password may be another one although the text is the same.
    let is_same = is_same && before.config == after.config;
    let mut steps = binds;
    steps.append(&mut permits);
    if is_same && open.is_empty() && close.is_empty() {
        return steps;
    }
    steps.extend(READ_AT_START.into_iter().filter_map(|(key, differs)| {
        differs(before.config, after.config).then_some(Step::WarnOfRestart(key))
    }));
    steps.push(Step::ProvideDescriptors(Need {
        clients: after.config.limits.clients,
        workers,
        members: after.members,
    }));
    let removed: Vec<MemberId> = before.copies.difference(&after.copies).copied().collect();
    if !removed.is_empty() {
        steps.push(Step::RemoveCopies(removed));
    }
    steps.push(Step::Exchange { open, close });
    steps.push(Step::Record);
    steps
}

type Differs = fn(&Config, &Config) -> bool;

/// Keys that take effect with the next start only, each with how a change of it is noticed.
const READ_AT_START: [(&str, Differs); 5] = [
    ("workers", |running, wanted| running.workers != wanted.workers),
    ("admin", |running, wanted| {
        let of = |config: &Config| {
            (
                config.admin.clone(),
                config.admin_tls.clone(),
                config.admin_tokens.clone(),
            )
        };
        of(running) != of(wanted)
    }),
    ("embedded.memory", |running, wanted| {
        running.embedded != wanted.embedded
    }),
    ("state", |running, wanted| running.state != wanted.state),
    ("fleet", |running, wanted| running.fleet != wanted.fleet),
];

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::config::schema::{self, Embedded, Leaf, Protocol, Route};

    fn config(addresses: &[&str]) -> Config {
        let listener = |address: &&str| schema::Listener {
            protocol: Protocol::MEMCACHED,
            address: (*address).to_owned(),
            route: Route::Leaf(Leaf::Embedded),
            access: schema::Access::Open,
            permissions: Permissions::default(),
            discovery: None,
            socket: SocketOptions::default(),
            tls: None,
            reply_style: schema::ReplyStyle::Own,
            server_version: None,
            door: schema::Door::default(),
        };
        Config {
            listeners: addresses.iter().map(listener).collect(),
            ..Config::default()
        }
    }

    /// What a side refers to besides its configuration.
    #[derive(Default)]
    struct World {
        departed: Departed,
        hosts: BTreeMap<String, IpAddr>,
    }

    impl World {
        fn side<'a>(&'a self, version: &'a str, config: &'a Config, copies: &[u32]) -> Side<'a> {
            Side {
                version,
                config,
                departed: &self.departed,
                hosts: &self.hosts,
                members: copies.len(),
                copies: copies.iter().copied().map(MemberId).collect(),
                accepts: true,
            }
        }
    }

    fn listeners(rows: &[(&str, bool)]) -> Vec<Listener> {
        let listener = |&(address, is_open): &(&str, bool)| Listener {
            address: address.to_owned(),
            is_open,
        };
        rows.iter().map(listener).collect()
    }

    fn bind(listener: u16, address: &str) -> Step {
        Step::Bind {
            listener,
            address: address.to_owned(),
            permissions: Permissions::default(),
            socket: SocketOptions::default(),
        }
    }

    fn need(members: usize) -> Step {
        Step::ProvideDescriptors(Need {
            clients: 10_000,
            workers: 4,
            members,
        })
    }

    fn exchange(open: &[u16], close: &[u16]) -> Step {
        Step::Exchange {
            open: open.to_vec(),
            close: close.to_vec(),
        }
    }

    #[test]
    fn the_first_configuration_opens_all_its_listeners() {
        let world = World::default();
        let config = config(&["a:1", "b:1"]);
        let (before, after) = (world.side("", &config, &[]), world.side("1", &config, &[7]));
        let steps = plan(&before, &after, &[], 4);
        assert_eq!(
            steps,
            [
                bind(0, "a:1"),
                bind(1, "b:1"),
                need(1),
                exchange(&[0, 1], &[]),
                Step::Record
            ]
        );
    }

    #[test]
    fn an_unchanged_configuration_has_no_steps() {
        let world = World::default();
        let config = config(&["a:1"]);
        let side = world.side("1", &config, &[7]);
        assert_eq!(plan(&side, &side, &listeners(&[("a:1", true)]), 4), []);
    }

    #[test]
    fn an_unchanged_socket_file_gets_its_permissions_again_and_nothing_else() {
        let world = World::default();
        let config = config(&["unix:/s"]);
        let side = world.side("1", &config, &[]);
        let steps = plan(&side, &side, &listeners(&[("unix:/s", true)]), 4);
        let permit = Step::Permit {
            address: "unix:/s".to_owned(),
            permissions: Permissions::default(),
        };
        assert_eq!(steps, [permit]);
    }

    #[test]
    fn listeners_are_opened_closed_and_kept_under_their_numbers() {
        let world = World::default();
        let known = listeners(&[("a:1", true), ("b:1", true), ("c:1", false)]);
        let (before, after) = (config(&["a:1", "b:1"]), config(&["c:1", "b:1", "d:1"]));
        let steps = plan(
            &world.side("1", &before, &[]),
            &world.side("2", &after, &[]),
            &known,
            4,
        );
        assert_eq!(
            steps,
            [
                bind(2, "c:1"),
                bind(3, "d:1"),
                need(0),
                exchange(&[2, 3], &[0]),
                Step::Record
            ]
        );
    }

    #[test]
    fn a_listener_that_is_missing_is_opened_although_the_text_is_the_same() {
        let world = World::default();
        let config = config(&["a:1"]);
        let side = world.side("1", &config, &[]);
        let steps = plan(&side, &side, &listeners(&[("a:1", false)]), 4);
        assert_eq!(
            steps,
            [bind(0, "a:1"), need(0), exchange(&[0], &[]), Step::Record]
        );
    }

    #[test]
    fn a_proxy_that_drains_opens_no_listener_and_follows_all_else() {
        let world = World::default();
        let (before, after) = (config(&["a:1", "unix:/s"]), config(&["a:1", "unix:/s", "b:1"]));
        let closed = listeners(&[("a:1", false), ("unix:/s", false)]);
        let after = Side {
            accepts: false,
            ..world.side("2", &after, &[])
        };
        let steps = plan(&world.side("1", &before, &[]), &after, &closed, 4);
        assert_eq!(steps, [need(0), exchange(&[], &[]), Step::Record]);
    }

    #[test]
    fn copies_that_are_members_no_longer_are_removed_before_workers_get_their_trees() {
        let world = World::default();
        let config = config(&["a:1"]);
        let steps = plan(
            &world.side("1", &config, &[1, 2, 3]),
            &world.side("2", &config, &[3, 4]),
            &listeners(&[("a:1", true)]),
            4,
        );
        let removed = Step::RemoveCopies(vec![MemberId(1), MemberId(2)]);
        assert_eq!(steps, [need(2), removed, exchange(&[], &[]), Step::Record]);
    }

    #[test]
    fn another_address_of_a_host_changes_trees_though_no_text_differs() {
        let world = World::default();
        let config = config(&["a:1"]);
        let moved = World {
            hosts: [("mc-0".to_owned(), IpAddr::from([10, 0, 0, 1]))].into(),
            ..World::default()
        };
        let steps = plan(
            &world.side("1", &config, &[]),
            &moved.side("1", &config, &[]),
            &listeners(&[("a:1", true)]),
            4,
        );
        assert_eq!(steps, [need(0), exchange(&[], &[]), Step::Record]);
    }

    #[test]
    fn keys_that_are_read_at_the_start_are_warned_of() {
        let world = World::default();
        let running = config(&["a:1"]);
        let wanted = Config {
            workers: Some(3),
            admin: None,
            embedded: Embedded { memory: 1 },
            state: Some(PathBuf::from("s")),
            ..running.clone()
        };
        let (before, after) = (world.side("1", &running, &[]), world.side("2", &wanted, &[]));
        let steps = plan(&before, &after, &listeners(&[("a:1", true)]), 4);
        let warned: Vec<_> = steps
            .iter()
            .filter_map(|step| match step {
                Step::WarnOfRestart(key) => Some(*key),
                _ => None,
            })
            .collect();
        assert_eq!(warned, ["workers", "admin", "embedded.memory", "state"]);
    }

    #[test]
    fn steps_that_may_fail_precede_all_others() {
        let world = World::default();
        let known = listeners(&[("unix:/s", true), ("b:1", true)]);
        let (before, after) = (config(&["unix:/s", "b:1"]), config(&["unix:/s", "c:1", "d:1"]));
        let steps = plan(
            &world.side("1", &before, &[1]),
            &world.side("2", &after, &[]),
            &known,
            4,
        );
        let may_fail: Vec<bool> = steps.iter().map(Step::may_fail).collect();
        assert_eq!(may_fail, [true, true, true, false, false, false, false]);
    }
}
