//! Three proxies with a copy each, the links between them, and what the voters have agreed on.

use std::sync::Arc;

use proxima::fleet::{Change, Peer, Roster, Slot, Stay, View};

use crate::{
    client::{Client, Clients, Progress},
    explore::Model,
    link::Link,
    proxy::{Proxy, print},
    scope::Scope,
    step::Step,
};

/// The number of proxies.
pub(crate) const PROXIES: usize = 3;
/// The hash of the one key.
pub(crate) const HASH: u64 = 7;
/// The one key.
pub(crate) const KEY: &[u8] = b"k";
/// The hash of the one pool.
pub(crate) const POOL: u64 = 1;

/// What may still happen.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Budget {
    pub(crate) losses: u8,
    pub(crate) removals: u8,
    pub(crate) restarts: u8,
    /// Who may still be killed, a bit for each.
    pub(crate) kills: u8,
    pub(crate) demotions: u8,
}

/// The state of everything.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) scope: Arc<Scope>,
    pub(crate) proxies: [Arc<Proxy>; PROXIES],
    /// By coordinator and keeper.
    pub(crate) links: Arc<[[Link; PROXIES]; PROXIES]>,
    pub(crate) roster: Arc<Roster>,
    /// All views so far, by their numbers.
    pub(crate) views: Arc<Vec<Arc<View>>>,
    pub(crate) clients: Clients,
    pub(crate) budget: Budget,
    /// Before which view decisions have ended everywhere, as each proxy was told last.
    pub(crate) told: [u64; PROXIES],
    /// A peer was taken for hostile.
    pub(crate) refused: bool,
}

/// The name of a proxy.
pub(crate) fn name(proxy: usize) -> String {
    ["a", "b", "c"][proxy].to_owned()
}

/// The number of the proxy of this name.
pub(crate) fn number(name: &str) -> usize {
    usize::from(name.as_bytes()[0] - b'a')
}

/// What a proxy announces.
pub(crate) fn announced(proxy: usize, process: u64) -> Peer {
    Peer {
        name: name(proxy),
        identity: proxy as u128 + 1,
        process,
        address: ([127, 0, 0, 1], 1).into(),
        stay: Stay(0),
        slot: Slot(0),
        decides: false,
        workers: 1,
        lease: 0,
        zone: None,
        copies: vec![("cache".to_owned(), "own".to_owned())],
    }
}

fn bits(proxies: &[usize]) -> u8 {
    proxies.iter().fold(0, |bits, proxy| bits | 1 << proxy)
}

impl World {
    /// All are peers, their copies are equal and read, and all decisions have ended.
    pub(crate) fn new(scope: &Scope) -> Self {
        let mut roster = Roster::default();
        let peers = scope.peers.iter().map(|&proxy| announced(proxy, 1)).collect();
        roster.apply(&Change::Join { peers });
        for &proxy in scope.deciders {
            let stay = Stay(1);
            let (name, decides) = (name(proxy), true);
            roster.apply(&Change::Decide { name, stay, decides });
        }
        let mut world = Self {
            proxies: std::array::from_fn(|_| Arc::new(Proxy::new(scope.rules))),
            links: Arc::default(),
            roster: Arc::default(),
            views: Arc::new(vec![Arc::default()]),
            clients: Clients(vec![Client::default(); scope.requests.len()]),
            budget: Budget {
                losses: scope.losses,
                removals: scope.removals,
                restarts: scope.restarts,
                kills: bits(scope.killed),
                demotions: scope.demoted.len() as u8,
            },
            scope: Arc::new(scope.clone()),
            told: [0; PROXIES],
            refused: false,
        };
        // Views that nobody has seen are of no interest, but keep their numbers.
        Arc::make_mut(&mut world.views).resize(roster.view.number as usize, Arc::default());
        world.agree_on(roster);
        for &proxy in scope.peers {
            world.install(proxy, world.roster.view.number);
            let one = world.proxy(proxy);
            one.keeper.shared().set_floor(proxima::fleet::Stamp::ZERO);
            (one.joining, one.reads) = (None, true);
        }
        world.end_of_step();
        world
    }

    /// This proxy, to be changed.
    pub(crate) fn proxy(&mut self, proxy: usize) -> &mut Proxy {
        Arc::make_mut(&mut self.proxies[proxy])
    }

    /// The link between these, to be changed.
    pub(crate) fn link(&mut self, from: usize, to: usize) -> &mut Link {
        &mut Arc::make_mut(&mut self.links)[from][to]
    }

    /// The voters have agreed.
    pub(crate) fn agree_on(&mut self, roster: Roster) {
        Arc::make_mut(&mut self.views).push(Arc::new(roster.view.clone()));
        self.roster = Arc::new(roster);
    }

    /// The voters agree on this change.
    pub(crate) fn agree(&mut self, change: &Change) {
        let mut roster = Roster::clone(&self.roster);
        if roster.apply(change) {
            self.agree_on(roster);
        }
    }

    /// The stay that the voters know of this very process.
    pub(crate) fn stay(&self, proxy: usize) -> Option<Stay> {
        let peer = self.roster.view.named(&name(proxy))?;
        (peer.process == self.proxies[proxy].process).then_some(peer.stay)
    }

    /// May clients be answered at this proxy?
    pub(crate) fn is_leased(&self, proxy: usize) -> bool {
        let proxy = &self.proxies[proxy];
        proxy.alive && proxy.keeper.me().is_some() && (proxy.lease || !self.scope.uses.lease_for_reads)
    }

    /// What follows at once from every step.
    pub(crate) fn end_of_step(&mut self) {
        self.connect();
        self.deliver_promptly();
        self.settle();
    }

    /// What arrives at once in this scope.
    fn deliver_promptly(&mut self) {
        let scope = Arc::clone(&self.scope);
        let next = |world: &Self| {
            scope.prompt.iter().copied().find_map(|(from, to)| {
                let has_ack = !world.links[from][to].acks.is_empty();
                let has_frame = world.may_take_next(from, to);
                (has_ack || has_frame).then_some((from, to, has_ack))
            })
        };
        while let Some((from, to, has_ack)) = next(self) {
            match has_ack {
                true => self.take_ack(from, to),
                false => self.take_frame(from, to),
            }
        }
    }

    /// What is wrong with what may be read.
    fn wrong_read(&self) -> Option<String> {
        let reads = |&proxy: &usize| self.is_leased(proxy) && self.proxies[proxy].reads;
        let stale = |&proxy: &usize| {
            let content = self.proxies[proxy].copy;
            content.is_some_and(|content| self.clients.is_stale(content))
        };
        let proxy = (0..PROXIES).filter(reads).find(stale)?;
        let (value, _) = self.proxies[proxy].copy?;
        Some(format!(
            "{} answers value {value}, after a newer one was acknowledged",
            name(proxy)
        ))
    }

    /// What is wrong when nothing is under way any more.
    fn wrong_end(&self) -> Option<String> {
        if self.scope.requests.is_empty() || self.is_under_way() {
            return None;
        }
        let is_dead = |peer: &Peer| {
            self.stay(number(&peer.name)) != Some(peer.stay) || !self.proxies[number(&peer.name)].alive
        };
        if self.roster.view.peers.iter().any(is_dead) {
            return None;
        }
        let mut values = (0..PROXIES).filter(|&proxy| self.is_leased(proxy) && self.proxies[proxy].reads);
        let held: Vec<u8> = values
            .by_ref()
            .filter_map(|proxy| self.proxies[proxy].copy.map(|(value, _)| value))
            .collect();
        if held.windows(2).any(|pair| pair[0] != pair[1]) {
            return Some(format!("copies that are read differ for good: {held:?}"));
        }
        let waits = |client: &Client| matches!(client.progress, Progress::UnderWay(_));
        let client = self.clients.0.iter().position(waits)?;
        Some(format!("nobody answers client {client}"))
    }
}

impl Model for World {
    type Step = Step;

    fn steps(&self) -> Vec<Step> {
        self.possible()
    }

    fn make(&mut self, step: Step) {
        self.go(step);
        self.end_of_step();
        for proxy in &mut self.proxies {
            // Who is not shared with the state before has changed.
            if let Some(proxy) = Arc::get_mut(proxy) {
                proxy.note();
            }
        }
    }

    fn fingerprint(&self) -> u64 {
        let proxies = self.proxies.each_ref().map(|proxy| proxy.print);
        let peers = self.roster.view.peers.iter();
        let peers: Vec<_> = peers.map(|peer| (&peer.name, peer.stay, peer.decides)).collect();
        let all = (
            proxies,
            &*self.links,
            self.roster.view.number,
            peers,
            &self.clients,
            &self.budget,
            self.told,
        );
        print(&all)
    }

    fn wrong(&self) -> Option<String> {
        if self.refused {
            return Some("a peer was refused what it may send".to_owned());
        }
        self.clients
            .wrong()
            .or_else(|| self.wrong_read())
            .or_else(|| self.wrong_end())
    }
}
