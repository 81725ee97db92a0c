//! A request that another peer answers: a read while the own copy may not be read, or a decision at the key's
//! home.

use std::rc::Rc;

use proxima_wire::{
    fleet::{Answer as AnswerFrame, AnswerBody, Ask, AskKind, MESSAGE_LIMIT},
    message::{Outcome, Request},
};

use super::{CLIENT_TIMEOUT, NO_FLEET, NO_HOME, UNLEASED};
use crate::{
    copies::path::operation::NO_POOL,
    engine::{Endpoint, Engine, LinkId, ReplyTo},
    fleet::{Slot, Stay},
    members::Locality,
    micros::Micros,
    protocol::{Effect, Failed, StateSlot},
    route::{Answer, Copies, Leaf, NodeId, Origin, Tree, Walk},
    table::{Entry, Id},
};

/// The most neighbours that a read asks, one after the other, before it is answered with a miss.
const NEIGHBOURS: u32 = 3;

/// A request that waits for a peer's answer.
pub(super) struct Asking {
    generation: u32,
    parent: ReplyTo,
    tree: Rc<Tree>,
    node: NodeId,
    origin: Origin,
    request: Request,
    message: Vec<u8>,
    kind: AskKind,
    /// The peer that was asked; `None` as long as no peer can be asked.
    peer: Option<(Slot, Stay)>,
    /// How many peers were asked before.
    tries: u32,
    since: Micros,
}

/// The handle of a request that waits for a peer's answer.
pub(super) type AskId = Id<Asking>;

impl Entry for Asking {
    type Kind = Self;

    fn generation(&self) -> u32 {
        self.generation
    }
}

impl Asking {
    pub(super) fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.message.capacity()
    }
}

impl Engine {
    /// Asks another peer.
    pub(super) fn ask_peer(&mut self, node: NodeId, kind: AskKind, walk: &Walk<'_>) {
        let now = self.now;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let id = fleet.asks.insert(|generation| Asking {
            generation,
            parent: walk.to,
            tree: Rc::clone(walk.tree),
            node,
            origin: walk.origin,
            request: *walk.request,
            message: walk.message.to_vec(),
            kind,
            peer: None,
            tries: 0,
            since: now,
        });
        if kind == AskKind::Home {
            self.hold_requests_behind(walk.to);
        }
        self.ask_next(id);
    }

    /// Asks the next peer that may know.
    fn ask_next(&mut self, id: AskId) {
        let now = self.now;
        let Some(fleet) = self.copies.fleet.as_ref() else {
            return self.broken(NO_FLEET);
        };
        let Some(asking) = fleet.asks.get(id) else { return };
        let tree = Rc::clone(&asking.tree);
        let Some(copies) = tree.copies(asking.node) else {
            return self.broken(NO_POOL);
        };
        let Some(fleet_pool) = &copies.fleet else { return };
        let (peer, may_decide) = match asking.kind {
            AskKind::Look => (fleet.neighbour(&fleet_pool.name, asking.tries), false),
            AskKind::Home => {
                let mut scratch = [0; 250];
                let protocol = asking.origin.protocol;
                let key = protocol.key(&asking.request, &asking.message, &mut scratch);
                let may_decide = fleet.keeper.may_decide(fleet_pool.key_hash(key));
                (
                    fleet.home(fleet_pool, key),
                    may_decide && self.may_read_own(&tree, copies),
                )
            }
        };
        let is_me = peer.is_some_and(|(slot, _)| fleet.me().is_some_and(|me| me.0 == slot));
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return;
        };
        let Some(asking) = fleet.asks.get(id) else { return };
        let link = peer.and_then(|(slot, stay)| fleet.links.to(slot, stay));
        let late = now - asking.since > CLIENT_TIMEOUT;
        match (asking.kind, link) {
            (AskKind::Home, _) if is_me && may_decide => self.serve_as_home(id),
            (_, Some(link)) => {
                let frame = Ask {
                    view: fleet.keeper.view().number,
                    number: id.to_bits(),
                    pool: fleet_pool.hash,
                    kind: asking.kind,
                    form: asking.origin.form,
                    message: &asking.message,
                };
                if let Some(link) = fleet.links.get_mut(link) {
                    frame.write(&mut link.stream.out);
                }
                if let Some(asking) = fleet.asks.get_mut(id) {
                    asking.peer = peer;
                    asking.tries += 1;
                }
                self.flush_later(Endpoint::Link(link));
            }
            (AskKind::Look, None) => self.answer_with_miss(id),
            (AskKind::Home, None) if late && is_me => self.fail_ask(id, Outcome::Ejected, NO_HOME),
            (AskKind::Home, None) if late => {
                self.fail_ask(
                    id,
                    Outcome::Ejected,
                    "the peer that decides this key is not in reach",
                );
            }
            (AskKind::Home, None) => {
                if let Some(asking) = fleet.asks.get_mut(id) {
                    asking.peer = None;
                }
            }
        }
    }

    /// This peer is the home of the key now, and may decide it.
    fn serve_as_home(&mut self, id: AskId) {
        let Some(asking) = self.take_ask(id) else { return };
        let walk = Walk {
            tree: &asking.tree,
            origin: asking.origin,
            request: &asking.request,
            message: &asking.message,
            to: asking.parent,
        };
        self.walk(asking.node, &walk);
    }

    /// No neighbour has a copy that may be read: the cache is empty for now.
    fn answer_with_miss(&mut self, id: AskId) {
        let Some(asking) = self.take_ask(id) else { return };
        let walk = Walk {
            tree: &asking.tree,
            origin: asking.origin,
            request: &asking.request,
            message: &asking.message,
            to: asking.parent,
        };
        self.leaf(&Leaf::Null, &walk);
    }

    fn take_ask(&mut self, id: AskId) -> Option<Asking> {
        self.copies.fleet.as_mut()?.asks.remove(id)
    }

    fn fail_ask(&mut self, id: AskId, outcome: Outcome, what: &str) {
        if let Some(asking) = self.take_ask(id) {
            self.fail(asking.parent, &Failed::here(outcome, what));
        }
    }

    /// A peer has answered.
    pub(super) fn take_answer(&mut self, from: (Slot, Stay), frame: &AnswerFrame<'_>) {
        let id = AskId::from_bits(frame.number);
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let Some(asking) = fleet.asks.get(id).filter(|asking| asking.peer == Some(from)) else {
            return;
        };
        let (kind, late) = (asking.kind, self.now - asking.since > CLIENT_TIMEOUT);
        match frame.said {
            AnswerBody::Reply(bytes) => {
                let whole = asking.origin.protocol.whole(
                    &StateSlot::NONE,
                    asking.request.command,
                    b"",
                    bytes,
                    MESSAGE_LIMIT as u64,
                );
                match whole.filter(|reply| reply.len() == bytes.len() as u64) {
                    Some(reply) => {
                        if let Some(asking) = self.take_ask(id) {
                            self.deliver(asking.parent, &reply, bytes);
                        }
                    }
                    None => self.fail_ask(id, Outcome::RemoteError, "a peer's reply cannot be read"),
                }
            }
            AnswerBody::NotHere(_) if kind == AskKind::Look => match asking.tries < NEIGHBOURS {
                true => self.ask_next(id),
                false => self.answer_with_miss(id),
            },
            AnswerBody::NotHere(why) if late => {
                let why = String::from_utf8_lossy(why).into_owned();
                self.fail_ask(id, Outcome::Ejected, &why);
            }
            AnswerBody::NotHere(_) => {
                // It is asked again with the next check of waiting requests: the view is changing.
                if let Some(asking) = fleet.asks.get_mut(id) {
                    asking.peer = None;
                }
            }
            AnswerBody::Failed(why) => {
                let why = String::from_utf8_lossy(why).into_owned();
                self.fail_ask(id, Outcome::RemoteError, &why);
            }
        }
    }

    /// The link to this peer is gone, or its stay has ended: reads that it was asked are asked elsewhere, and
    /// decisions that it was asked may have been executed.
    pub(super) fn lose_asks(&mut self, slot: Slot, stay: Stay) {
        let Some(fleet) = self.copies.fleet.as_ref() else {
            return self.broken(NO_FLEET);
        };
        let lost: Vec<(AskId, AskKind, bool)> = fleet
            .asks
            .iter()
            .filter(|(_, asking)| asking.peer == Some((slot, stay)))
            .map(|(id, asking)| {
                let copies = asking.tree.copies(asking.node);
                let looks = copies.is_some_and(|copies| !is_change(copies, asking));
                (id, asking.kind, looks)
            })
            .collect();
        for (id, kind, looks) in lost {
            match (kind, looks) {
                (AskKind::Look, _) | (AskKind::Home, true) => self.ask_next(id),
                (AskKind::Home, false) => {
                    let text = "the peer that decides this key went away: the change may have been done";
                    self.fail_ask(id, Outcome::Timeout, text);
                }
            }
        }
    }

    /// Retries requests that no peer could be asked, and gives up requests that have waited too long.
    pub(super) fn check_asks(&mut self) {
        let Some(fleet) = self.copies.fleet.as_ref() else {
            return;
        };
        let now = self.now;
        let due = |asking: &Asking| asking.peer.is_none() || now - asking.since > CLIENT_TIMEOUT;
        let due: Vec<AskId> = fleet
            .asks
            .iter()
            .filter(|(_, asking)| due(asking))
            .map(|(id, _)| id)
            .collect();
        for id in due {
            let asking = self.copies.fleet.as_ref().and_then(|fleet| fleet.asks.get(id));
            match asking.map(|asking| (asking.kind, asking.peer.is_some())) {
                Some((AskKind::Look, true)) => self.answer_with_miss(id),
                Some((AskKind::Home, true)) => {
                    let text =
                        "the peer that decides this key does not answer: the change may have been done";
                    self.fail_ask(id, Outcome::Timeout, text);
                }
                Some((_, false)) => self.ask_next(id),
                None => {}
            }
        }
    }

    /// Answers a peer that has asked this one.
    pub(super) fn answer_ask(&mut self, link: LinkId, number: u64, answer: &Answer<'_>) {
        let text;
        let said = match answer {
            Answer::Reply(_, bytes) => AnswerBody::Reply(bytes),
            Answer::Failed(failed) => {
                text = failed.to_string();
                AnswerBody::Failed(text.as_bytes())
            }
        };
        self.say(link, number, said);
    }

    /// Says this to a peer.
    pub(super) fn say(&mut self, link: LinkId, number: u64, said: AnswerBody<'_>) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let clock = fleet.keeper.clock().bits();
        let said = match said {
            // A longer frame would end the link.
            AnswerBody::Reply(bytes) if bytes.len() > MESSAGE_LIMIT => {
                AnswerBody::Failed(b"this value is too large for a peer")
            }
            _ => said,
        };
        if let Some(open) = fleet.links.get_mut(link) {
            AnswerFrame { number, clock, said }.write(&mut open.stream.out);
            self.flush_later(Endpoint::Link(link));
        }
    }

    /// Serves the request of a peer, whose view is this worker's.
    pub(super) fn serve_peer(&mut self, link: LinkId, ask: &Ask<'_>) {
        let tree = Rc::clone(&self.tree);
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let number = ask.number;
        if !fleet.is_leased() {
            return self.say(link, number, AnswerBody::NotHere(UNLEASED.as_bytes()));
        }
        let Some(&node) = fleet.pools.get(&ask.pool) else {
            return self.say(
                link,
                number,
                AnswerBody::NotHere(b"this peer does not have the pool"),
            );
        };
        let Some(copies) = tree.copies(node) else { return };
        let Some((protocol, request)) = copies
            .fleet
            .as_ref()
            .and_then(|fleet_pool| fleet_pool.head(ask.message))
        else {
            return self.say(
                link,
                number,
                AnswerBody::Failed(b"a peer cannot read this request"),
            );
        };
        let task = fleet.tasks.insert(|generation| super::Task {
            generation,
            link,
            number,
            work: super::task::Work::Answer,
        });
        let walk = Walk {
            tree: &tree,
            origin: Origin {
                listener: 0,
                form: ask.form,
                login: 0,
                locality: Locality::NONE,
                client: None,
                protocol,
                hides_prefix: false,
            },
            request: &request,
            message: ask.message,
            to: ReplyTo::Peer { task },
        };
        let served = match ask.kind {
            AskKind::Look => self.look_for_peer(copies, &walk),
            AskKind::Home => self.decide_for_peer(node, copies, &walk),
        };
        if !served {
            self.forget_task(task);
            self.say(
                link,
                number,
                AnswerBody::NotHere(b"another peer has to answer this"),
            );
        }
    }

    /// Reads at the own copy; `false`: it may not be read.
    fn look_for_peer(&mut self, copies: &Copies, walk: &Walk<'_>) -> bool {
        let Some(own) = copies.children.first().copied() else {
            return false;
        };
        let may = self.may_read_own(walk.tree, copies);
        if may {
            self.walk(own, walk);
        }
        may
    }

    /// Decides, or looks, as the key's home; `false`: this peer is not.
    fn decide_for_peer(&mut self, node: NodeId, copies: &Copies, walk: &Walk<'_>) -> bool {
        let mut scratch = [0; 250];
        let key = walk.key(&mut scratch);
        let is_home = copies.fleet.as_ref().is_some_and(|fleet_pool| {
            let fleet = self.copies.fleet.as_ref();
            fleet.is_some_and(|fleet| fleet.is_home(fleet_pool, key))
        });
        if is_home {
            self.ask_in_fleet(node, copies, walk);
        }
        is_home
    }
}

fn is_change(copies: &Copies, asking: &Asking) -> bool {
    let effect = copies.copied.effect(&asking.request, &asking.message);
    !matches!(effect, Effect::Look | Effect::LookAtHome)
}
