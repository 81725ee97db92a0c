//! What may happen next.

use std::fmt;

use proxima::fleet::{Cause, Change, Stay};

use crate::{
    client::Progress,
    link::Said,
    proxy::Waiting,
    scope::Request,
    world::{HASH, PROXIES, World, announced, name, number},
};

/// A step. Proxies have numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// A client asks a proxy.
    Begin(usize, usize),
    /// What a coordinator sent next arrives.
    Frame(usize, usize),
    /// What a keeper said next arrives at the coordinator.
    Ack(usize, usize),
    /// A link from a coordinator to a keeper is lost, and another one is made.
    Lose(usize, usize),
    /// The own copy answers.
    Copy(usize),
    /// The own copy takes what an earlier process or stay sent.
    Stray(usize),
    /// What waited for a lock goes on.
    Wake(usize, usize),
    /// A proxy installs a view.
    Install(usize, u64),
    /// The voters remove a peer, whose lease has ended.
    Remove(usize),
    /// The voters let a peer join.
    Join(usize),
    /// The voters let a peer decide, or not any more.
    Decide(usize, bool),
    /// A peer, the last one, says what another one, the first, has missed.
    Give(usize, usize),
    /// A peer that joined has heard what it missed.
    Take(usize),
    /// A process dies.
    Kill(usize),
    /// A peer says goodbye and ends in good order, and another process begins.
    Goodbye(usize),
    /// Another process begins after one that was killed.
    Restart(usize),
}

impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let n = |proxy: &usize| name(*proxy);
        match self {
            Self::Begin(client, at) => write!(f, "client {client} asks {}", n(at)),
            Self::Frame(from, to) => write!(f, "{} takes what {} sent", n(to), n(from)),
            Self::Ack(from, to) => write!(f, "{} hears what {} says", n(from), n(to)),
            Self::Lose(from, to) => write!(f, "the link from {} to {} is lost", n(from), n(to)),
            Self::Copy(at) => write!(f, "the copy of {} answers", n(at)),
            Self::Stray(at) => write!(f, "the copy of {} takes what was sent before", n(at)),
            Self::Wake(at, _) => write!(f, "{} locks a key that was locked", n(at)),
            Self::Install(at, view) => write!(f, "{} installs view {view}", n(at)),
            Self::Remove(who) => write!(f, "the lease of {} has ended, and it is removed", n(who)),
            Self::Join(who) => write!(f, "{} joins", n(who)),
            Self::Decide(who, true) => write!(f, "{} decides from now on", n(who)),
            Self::Decide(who, false) => write!(f, "{} decides no more", n(who)),
            Self::Give(to, from) => write!(f, "{} tells {} what it missed", n(from), n(to)),
            Self::Take(at) => write!(f, "{} has its floor, repairs its copy and reads it", n(at)),
            Self::Kill(who) => write!(f, "{} is killed", n(who)),
            Self::Goodbye(who) => write!(f, "{} says goodbye and starts again", n(who)),
            Self::Restart(who) => write!(f, "{} starts again", n(who)),
        }
    }
}

impl World {
    /// All steps that are possible now.
    pub(crate) fn possible(&self) -> Vec<Step> {
        let mut steps = self.due();
        self.requests(&mut steps);
        self.failures(&mut steps);
        steps
    }

    /// Is there a step that comes sooner or later if nothing fails?
    pub(crate) fn is_under_way(&self) -> bool {
        !self.due().is_empty()
    }

    /// Is this proxy in this scope?
    fn takes_part(&self, at: usize) -> bool {
        self.scope.peers.contains(&at) || self.scope.joins.contains(&at)
    }

    /// The steps that come sooner or later.
    fn due(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        for at in 0..PROXIES {
            let proxy = &self.proxies[at];
            steps.extend((!proxy.lane.is_empty()).then_some(Step::Copy(at)));
            steps.extend((!proxy.stray.is_empty()).then_some(Step::Stray(at)));
            if !proxy.alive || !self.takes_part(at) {
                continue;
            }
            if !proxy.is_locked() {
                steps.extend((0..proxy.waiting.len()).map(|place| Step::Wake(at, place)));
            }
            let views = proxy.keeper.view().number + 1..=self.roster.view.number;
            let last = match self.scope.views_are_skipped || proxy.keeper.view().number == 0 {
                true => *views.end(),
                false => *views.start(),
            };
            let views = views.filter(|&view| view <= last && self.may_hear(at, view));
            steps.extend(views.map(|view| Step::Install(at, view)));
            for other in (0..PROXIES).filter(|&other| other != at) {
                let link = &self.links[at][other];
                steps.extend((!link.acks.is_empty()).then_some(Step::Ack(at, other)));
                steps.extend(self.may_take_next(at, other).then_some(Step::Frame(at, other)));
                steps.extend(self.may_give(at, other).then_some(Step::Give(at, other)));
            }
            steps.extend(proxy.gift.map(|_| Step::Take(at)));
        }
        steps
    }

    /// A process that begins hears of no view in which its last one had a place: nobody would let it join.
    /// The views before the model's first one are empty places.
    fn may_hear(&self, at: usize, number: u64) -> bool {
        let (view, proxy) = (&self.views[number as usize], &self.proxies[at]);
        let is_new = proxy.keeper.view().number == 0;
        let peer = view.named(&name(at)).filter(|peer| peer.process != proxy.process);
        view.number == number && !(is_new && peer.is_some())
    }

    fn requests(&self, steps: &mut Vec<Step>) {
        for (client, request) in self.scope.requests.iter().enumerate() {
            // Equal requests are made in the order of their numbers.
            let mut before = self.scope.requests[..client].iter().zip(&self.clients.0);
            let is_next = !before.any(|(other, one)| other == request && one.progress == Progress::Idle);
            if self.clients.0[client].progress != Progress::Idle || !is_next {
                continue;
            }
            match *request {
                Request::Set(at) if self.may_ask(at) => steps.push(Step::Begin(client, at)),
                Request::Set(_) => {}
                Request::Incr => {
                    let may = |&at: &usize| {
                        let proxy = &self.proxies[at];
                        self.may_ask(at) && proxy.reads && proxy.keeper.may_decide(HASH)
                    };
                    steps.extend((0..PROXIES).filter(may).map(|at| Step::Begin(client, at)));
                }
            }
        }
    }

    /// May a client change something through this proxy now?
    fn may_ask(&self, at: usize) -> bool {
        let proxy = &self.proxies[at];
        let has_floor = proxy.keeper.shared().has_floor() || !self.scope.uses.floor_before_changes;
        proxy.alive && proxy.lease && proxy.keeper.me().is_some() && has_floor && !proxy.is_locked()
    }

    fn failures(&self, steps: &mut Vec<Step>) {
        let scope = &self.scope;
        for at in 0..PROXIES {
            let (proxy, stay) = (&self.proxies[at], self.stay(at));
            let peer = self.roster.view.named(&name(at));
            for other in 0..PROXIES {
                let link = &self.links[at][other];
                let is_used = !link.frames.is_empty() || !link.acks.is_empty();
                if self.budget.losses > 0 && is_used {
                    steps.push(Step::Lose(at, other));
                }
            }
            if self.budget.removals > 0 && peer.is_some() && self.roster.view.peers.len() > 1 {
                let may_leave = scope.removed.contains(&at) || !proxy.alive || stay.is_none();
                steps.extend(may_leave.then_some(Step::Remove(at)));
                let says_goodbye = self.budget.restarts > 0 && proxy.alive && proxy.keeper.me().is_some();
                steps.extend((says_goodbye && scope.restarted.contains(&at)).then_some(Step::Goodbye(at)));
            }
            if peer.is_none() && proxy.alive && scope.joins.contains(&at) {
                steps.push(Step::Join(at));
            }
            if self.budget.kills & 1 << at != 0 && proxy.alive {
                steps.push(Step::Kill(at));
            }
            steps.extend((!proxy.alive && scope.joins.contains(&at)).then_some(Step::Restart(at)));
            if let (Some(peer), Some(_)) = (peer, stay) {
                let can = proxy.alive && proxy.reads && proxy.keeper.me() == Some((peer.slot, peer.stay));
                let begins = can && !peer.decides && scope.promoted.contains(&at);
                steps.extend(begins.then_some(Step::Decide(at, true)));
                let ends = peer.decides && self.budget.demotions > 0 && scope.demoted.contains(&at);
                steps.extend(ends.then_some(Step::Decide(at, false)));
            }
        }
    }

    /// Makes a step.
    pub(crate) fn go(&mut self, step: Step) {
        match step {
            Step::Begin(client, at) => match self.scope.requests[client] {
                Request::Set(_) => self.set(client, at),
                Request::Incr => self.decide(client, at),
            },
            Step::Frame(from, to) => self.take_frame(from, to),
            Step::Ack(from, to) => self.take_ack(from, to),
            Step::Lose(from, to) => {
                self.budget.losses -= 1;
                self.link(from, to).close();
            }
            Step::Copy(at) => self.copy_answers(at),
            Step::Stray(at) => {
                let proxy = self.proxy(at);
                proxy.copy = proxy.stray.remove(0);
            }
            Step::Wake(at, place) => match self.proxy(at).waiting.remove(place) {
                Waiting::Kept(kept) if kept.view != self.proxies[at].keeper.view().number => {
                    let view = self.proxies[at].keeper.view().number;
                    self.say(at, &kept, Said::View(view));
                }
                Waiting::Kept(kept) => self.judge(at, kept),
                Waiting::Again(token) => self.replicate_again(at, token),
                Waiting::Orphan => self.begin(at, None, false),
            },
            Step::Install(at, view) => self.install(at, view),
            Step::Remove(who) => self.remove(who),
            Step::Join(who) => {
                let peers = vec![announced(who, self.proxies[who].process)];
                self.agree(&Change::Join { peers });
            }
            Step::Decide(who, decides) => {
                let (name, stay) = (name(who), self.stay(who).unwrap_or(Stay(0)));
                self.budget.demotions -= u8::from(!decides);
                self.agree(&Change::Decide { name, stay, decides });
            }
            Step::Give(to, from) => self.give(to, from),
            Step::Take(at) => self.take(at),
            Step::Kill(who) => self.kill(who),
            Step::Goodbye(who) => self.say_goodbye(who),
            Step::Restart(who) => self.restart(who),
        }
    }

    /// A peer is removed. Its lease has ended.
    pub(crate) fn remove(&mut self, who: usize) {
        self.budget.removals -= 1;
        if self.scope.uses.lease_is_waited_for {
            self.proxy(who).lease = false;
        }
        let peer = self
            .roster
            .view
            .peers
            .iter()
            .find(|peer| number(&peer.name) == who);
        let peers = peer.map(|peer| (peer.name.clone(), peer.stay));
        let (peers, why) = (peers.into_iter().collect(), Cause::LeaseEnded);
        self.agree(&Change::Remove { peers, why });
    }
}
