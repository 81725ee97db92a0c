//! Views, and the begin and the end of a stay, as the control thread and its workers go through them.

use std::sync::Arc;

use proxima::micros::Micros;

use crate::{
    client::Progress,
    proxy::{Gift, Proxy, Waiting},
    world::{PROXIES, World, name, number},
};

impl World {
    /// A proxy installs a view.
    pub(crate) fn install(&mut self, at: usize, view: u64) {
        let view = Arc::clone(&self.views[view as usize]);
        let agreed = self.stay(at);
        let proxy = self.proxy(at);
        let peer = view.named(&name(at)).filter(|peer| peer.process == proxy.process);
        let (me, was) = (peer.map(|peer| (peer.slot, peer.stay)), proxy.keeper.me());
        if was.is_some() && me != was {
            proxy.keeper.shared().drop_floor();
            (proxy.lease, proxy.reads, proxy.joining, proxy.gift) = (false, false, None, None);
        }
        if let Some((_, stay)) = me.filter(|_| me != was) {
            // The leader grants a lease to who is in its view.
            (proxy.joining, proxy.lease) = (Some(stay), agreed == Some(stay));
        }
        let installed = proxy.keeper.install(Arc::clone(&view), me, Micros::ZERO);
        for other in (0..PROXIES).filter(|&other| other != at) {
            let peer = view.named(&name(other));
            for (from, to) in [(at, other), (other, at)] {
                let stays = self.links[from][to].stays;
                let stay = stays.map(|stays| if from == at { stays.1 } else { stays.0 });
                if stay.is_some() && (installed.expelled || peer.map(|peer| peer.stay) != stay) {
                    self.link(from, to).close();
                }
            }
        }
        if installed.expelled {
            self.end_stay(at);
        }
        self.send_changes(at);
        for _ in installed.orphans {
            match self.proxies[at].is_locked() {
                true => self.proxy(at).waiting.push(Waiting::Orphan),
                false => self.begin(at, None, false),
            }
        }
        for token in installed.again {
            self.need_again(at, token);
        }
        for token in installed.released {
            self.conclude(at, token);
        }
        self.confirm(at);
        let settled = self.told[at];
        self.proxy(at).keeper.settle(settled);
    }

    /// A proxy was removed: what it had under way is void, and its copy may hold what others do not.
    fn end_stay(&mut self, at: usize) {
        let late_writes_end = self.scope.uses.late_writes_end;
        let proxy = self.proxy(at);
        let uncertain = proxy.keeper.leave();
        proxy.uncertain |= uncertain.count() != Some(0);
        proxy.waiting.retain(|waiting| matches!(waiting, Waiting::Orphan));
        self.void(at);
        let proxy = self.proxy(at);
        if late_writes_end {
            let deciding = proxy.stray();
            // A decision may change the copy, and nobody else hears of it.
            proxy.uncertain |= !deciding.is_empty();
            for client in deciding {
                self.clients.0[client].progress = Progress::Failed;
            }
        }
    }

    /// The clients of this proxy hear that nobody knows what became of their changes.
    fn void(&mut self, at: usize) {
        let operations = std::mem::take(&mut self.proxy(at).operations);
        for client in operations.iter().filter_map(|one| one.client) {
            self.clients.0[client].progress = Progress::Failed;
        }
    }

    /// Makes the links that are missing between peers that know each other.
    pub(crate) fn connect(&mut self) {
        for from in 0..PROXIES {
            for to in (0..PROXIES).filter(|&to| to != from) {
                if self.links[from][to].stays.is_some() {
                    continue;
                }
                let [one, other] = [&self.proxies[from], &self.proxies[to]];
                let (Some(mine), Some(theirs)) = (one.keeper.me(), other.keeper.me()) else {
                    continue;
                };
                let knows = |knower: &Proxy, known: usize, stay| {
                    let peer = knower.keeper.view().named(&name(known));
                    knower.alive && peer.is_some_and(|peer| peer.stay == stay)
                };
                if knows(one, to, theirs.1) && knows(other, from, mine.1) {
                    self.link(from, to).open((mine.1, theirs.1));
                    self.proxy(from).keeper.send_again(theirs, Micros::ZERO);
                    self.send_changes(from);
                    self.confirm(from);
                }
            }
        }
    }

    /// All peers hear before which view decisions have ended everywhere.
    pub(crate) fn settle(&mut self) {
        let settled = self.roster.view.peers.iter().map(|peer| {
            let keeper = &self.proxies[number(&peer.name)].keeper;
            let is_stay = keeper.me() == Some((peer.slot, peer.stay));
            if is_stay { keeper.settled() } else { 0 }
        });
        let settled = settled.min().unwrap_or(0);
        for proxy in 0..PROXIES {
            if self.told[proxy] < settled {
                self.told[proxy] = settled;
                self.proxy(proxy).keeper.settle(settled);
            }
        }
    }

    /// Can this proxy be told now by the other one what it missed?
    pub(crate) fn may_give(&self, to: usize, from: usize) -> bool {
        let (joiner, donor) = (&self.proxies[to], &self.proxies[from]);
        let is_asked = joiner.joining.is_some_and(|stay| {
            donor.keeper.view().number >= stay.0 && donor.keeper.view().named(&name(to)).is_some()
        });
        let can = donor.alive && donor.keeper.me().is_some() && donor.keeper.shared().has_floor();
        is_asked && joiner.gift.is_none() && can
    }

    /// A peer says what another one missed.
    pub(crate) fn give(&mut self, to: usize, from: usize) {
        let donor = &self.proxies[from].keeper;
        let missed = donor.missed(&name(to), to as u128 + 1);
        let missed = missed.is_none_or(|missed| missed.count() != Some(0));
        let clock = donor.shared().clock();
        let joiner = self.proxy(to);
        joiner.gift = joiner.joining.map(|stay| Gift { stay, missed, clock });
    }

    /// A peer that has joined repairs its copy, and reads it from now on.
    pub(crate) fn take(&mut self, at: usize) {
        let uncertain_is_deleted = self.scope.uses.uncertain_is_deleted;
        let proxy = self.proxy(at);
        let Some(gift) = proxy.gift.take() else { return };
        if proxy.keeper.me().map(|me| me.1) != Some(gift.stay) {
            return;
        }
        proxy.keeper.shared().set_floor(gift.clock);
        proxy.stray.clear();
        if gift.missed || proxy.unknown || proxy.uncertain && uncertain_is_deleted {
            proxy.copy = None;
        }
        (proxy.joining, proxy.unknown, proxy.uncertain, proxy.reads) = (None, false, false, true);
    }

    /// A process dies. What it has sent to its copy may still land there.
    pub(crate) fn kill(&mut self, who: usize) {
        self.budget.kills &= !(1 << who);
        self.end_process(who);
        let unknown = self.scope.uses.flush_after_kill;
        let proxy = self.proxy(who);
        (proxy.alive, proxy.unknown, proxy.uncertain) = (false, unknown, false);
    }

    fn end_process(&mut self, who: usize) {
        self.void(who);
        self.told[who] = 0;
        for other in 0..PROXIES {
            self.link(who, other).close();
            self.link(other, who).close();
        }
        let fresh = Proxy::new(self.scope.rules);
        let proxy = self.proxy(who);
        let deciding = proxy.stray();
        *proxy = Proxy {
            process: proxy.process + 1,
            copy: proxy.copy,
            stray: std::mem::take(&mut proxy.stray),
            uncertain: proxy.uncertain,
            unknown: proxy.unknown,
            ..fresh
        };
        for client in deciding {
            self.clients.0[client].progress = Progress::Failed;
        }
    }

    /// A peer leaves in good order, writes down what is uncertain, and another process begins.
    pub(crate) fn say_goodbye(&mut self, who: usize) {
        self.budget.restarts -= 1;
        self.remove(who);
        self.install(who, self.roster.view.number);
        self.end_process(who);
    }

    /// Another process begins after one that was killed.
    pub(crate) fn restart(&mut self, who: usize) {
        self.proxy(who).alive = true;
    }
}
