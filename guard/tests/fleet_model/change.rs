//! Changes of clients and of peers, as a worker makes them.

use proxima::{
    fleet::{
        Slot, Stay,
        keeper::{AckOutcome, Origin, Send, Verdict, ViewOrder},
    },
    micros::Micros,
};

use crate::{
    client::Progress,
    link::{Ack, Frame, Said},
    proxy::{Kept, Operation, Purpose, Sent, Waiting},
    scope::Uses,
    world::{HASH, KEY, POOL, World, number},
};

/// No time goes by: stamps are counted, and nothing depends on the hour.
const TIMES: (u64, Micros) = (0, Micros::ZERO);

impl World {
    /// A client sets its value through this proxy.
    pub(crate) fn set(&mut self, client: usize, at: usize) {
        self.clients.begin(client, at);
        self.begin(at, Some(client), false);
    }

    /// A client lets the own copy of this proxy decide.
    pub(crate) fn decide(&mut self, client: usize, at: usize) {
        self.clients.begin(client, at);
        let proxy = self.proxy(at);
        proxy.tokens += 1;
        let token = proxy.tokens;
        proxy.keeper.begin_decision(token);
        self.send_to_copy(at, Sent::Decide { client, token });
    }

    /// The copy decides. What it decided goes to all others.
    fn decided(&mut self, at: usize, client: usize, token: u64) {
        let proxy = self.proxy(at);
        let base = proxy.copy;
        if base.is_none() || !proxy.alive {
            self.clients.0[client].progress = Progress::Failed;
            return self.end_decisions(at);
        }
        self.clients.0[client].base = base;
        self.begin_with(at, Some(client), true, token);
        if self.proxies[at].keeper.me().is_none() {
            // The client does not wait for ever.
            self.clients.0[client].progress = Progress::Failed;
        }
        let proxy = self.proxy(at);
        proxy.copy = Some((client as u8 + 1, proxy.drawn(true)));
        self.own_has_answered(at, token);
    }

    fn end_decisions(&mut self, at: usize) {
        let proxy = self.proxy(at);
        let mut under_way: Vec<u64> = proxy.operations.iter().map(|one| one.token).collect();
        under_way.extend(proxy.lane.iter().filter_map(|sent| match sent {
            Sent::Decide { token, .. } => Some(*token),
            _ => None,
        }));
        proxy.keeper.end_decisions(|token| under_way.contains(&token));
    }

    /// A change begins, whose key is locked. Without a client it deletes the key.
    pub(crate) fn begin(&mut self, at: usize, client: Option<usize>, decided: bool) {
        let proxy = self.proxy(at);
        proxy.tokens += 1;
        let token = proxy.tokens;
        self.begin_with(at, client, decided, token);
        self.change_own(at, token);
    }

    /// A change gets its stamp and goes to all peers.
    fn begin_with(&mut self, at: usize, client: Option<usize>, decided: bool, token: u64) {
        let proxy = self.proxy(at);
        let begun = proxy.keeper.begin(token, (POOL, KEY, HASH), decided, TIMES);
        let change = begun.unwrap_or_else(|_| unreachable!("a handful of changes is not too many"));
        let stamp = proxy.drawn(decided);
        proxy.operations.push(Operation {
            token,
            client,
            change,
            stamp,
            decided,
            own: false,
            again: false,
            answered: decided,
            superseded: false,
        });
        if let Some(client) = client {
            self.clients.0[client].stamp = stamp;
        }
        self.send_changes(at);
    }

    /// A change that was refused for a decided one gets a later stamp. Its key is locked.
    pub(crate) fn replicate_again(&mut self, at: usize, token: u64) {
        let proxy = self.proxy(at);
        let Some(operation) = proxy.operation(token) else {
            return;
        };
        operation.again = false;
        let (change, decided, client) = (operation.change, operation.decided, operation.client);
        proxy.keeper.again(change, HASH, TIMES);
        let stamp = proxy.drawn(decided);
        if let Some(operation) = proxy.operation(token) {
            operation.stamp = stamp;
        }
        if let Some(client) = client {
            self.clients.0[client].stamp = stamp;
        }
        self.send_changes(at);
        self.change_own(at, token);
    }

    /// A change needs a later stamp, as soon as the own copy has it with the one before.
    pub(crate) fn need_again(&mut self, at: usize, token: u64) {
        if let Some(operation) = self.proxy(at).operation(token)
            && !std::mem::replace(&mut operation.again, true)
            && !operation.own
        {
            self.draw_again(at, token);
        }
    }

    fn draw_again(&mut self, at: usize, token: u64) {
        match self.proxies[at].is_locked() {
            true => self.proxy(at).waiting.push(Waiting::Again(token)),
            false => self.replicate_again(at, token),
        }
    }

    /// Sends what has to be sent, as far as there are links.
    pub(crate) fn send_changes(&mut self, at: usize) {
        let sends: Vec<Send> = self.proxy(at).keeper.take_sends(Vec::new());
        for send in sends {
            let Some(to) = self.reached(at, send.slot, send.stay) else {
                continue;
            };
            let Some(operation) = self.proxy(at).operation(send.token) else {
                continue;
            };
            let value = operation.value();
            let frame = Frame::Change {
                view: self.proxies[at].keeper.view().number,
                sequence: send.sequence,
                stamp: send.stamp,
                value,
            };
            self.link(at, to).frames.push(frame);
        }
    }

    /// The peer to which there is a link from here.
    fn reached(&self, at: usize, slot: Slot, stay: Stay) -> Option<usize> {
        let peer = self.proxies[at].keeper.view().slot(slot)?;
        let to = number(&peer.name);
        let stays = self.links[at][to].stays;
        stays.is_some_and(|stays| stays.1 == stay).then_some(to)
    }

    /// Tells all peers what is complete. Nobody needs to know it in a fleet that stays the same.
    pub(crate) fn confirm(&mut self, at: usize) {
        if !self.scope.has_views() {
            return;
        }
        let view = self.proxies[at].keeper.view().clone();
        for peer in &view.peers {
            let Some(to) = self.reached(at, peer.slot, peer.stay) else {
                continue;
            };
            if let Some(up_to) = self.proxy(at).keeper.confirm(peer.slot) {
                let view = view.number;
                self.link(at, to).frames.push(Frame::Confirm { view, up_to });
            }
        }
    }

    fn change_own(&mut self, at: usize, token: u64) {
        let proxy = self.proxy(at);
        let Some(operation) = proxy.operation(token) else {
            return;
        };
        if operation.decided {
            return self.own_has_answered(at, token);
        }
        operation.own = true;
        let content = operation.value().map(|value| (value, operation.stamp));
        self.send_to_copy(at, Sent::Write(content, Purpose::Own(token)));
    }

    fn own_has_answered(&mut self, at: usize, token: u64) {
        let Some(operation) = self.proxy(at).operation(token) else {
            return;
        };
        operation.own = false;
        match operation.again {
            true => self.draw_again(at, token),
            false => self.conclude(at, token),
        }
    }

    /// Sends this to the own copy, which answers at once, or late.
    pub(crate) fn send_to_copy(&mut self, at: usize, sent: Sent) {
        self.proxy(at).lane.push(sent);
        if !self.scope.late.contains(&at) {
            self.copy_answers(at);
        }
    }

    /// The own copy takes what was sent first, and answers.
    pub(crate) fn copy_answers(&mut self, at: usize) {
        let proxy = self.proxy(at);
        let purpose = match proxy.lane.remove(0) {
            Sent::Decide { client, token } => return self.decided(at, client, token),
            Sent::Nothing(purpose) => purpose,
            Sent::Write(content, purpose) => {
                proxy.copy = content;
                purpose
            }
        };
        match purpose {
            Purpose::Kept(kept, said) => self.say(at, &kept, said),
            Purpose::Own(token) => {
                let proxy = self.proxy(at);
                let reads = proxy.reads;
                let Some(operation) = proxy.operation(token) else {
                    return;
                };
                operation.answered |= reads;
                self.own_has_answered(at, token);
            }
        }
    }

    /// Can a keeper take what a coordinator sent it first? What is of a later view waits.
    pub(crate) fn may_take_next(&self, from: usize, at: usize) -> bool {
        let Some(frame) = self.links[from][at].frames.first() else {
            return false;
        };
        let uses = &self.scope.uses;
        let is_compared = match frame {
            Frame::Change { .. } => uses.view_of_changes,
            Frame::Confirm { .. } => uses.view_of_confirmations,
        };
        let order = self.proxies[at].keeper.compare(frame.view());
        self.proxies[at].alive && !(is_compared && order == ViewOrder::Ahead)
    }

    /// A keeper takes what a coordinator sent.
    pub(crate) fn take_frame(&mut self, from: usize, at: usize) {
        let link = self.link(from, at);
        let (frame, number) = (link.frames.remove(0), link.number);
        let stay = link.stays.map(|stays| stays.0).unwrap_or_default();
        let uses = self.scope.uses;
        let proxy = self.proxy(at);
        let order = proxy.keeper.compare(frame.view());
        let slot = proxy
            .keeper
            .view()
            .peers
            .iter()
            .find(|peer| peer.stay == stay && crate::world::number(&peer.name) == from);
        let slot = slot.map(|peer| peer.slot).unwrap_or_default();
        let origin = Origin {
            slot,
            stay,
            worker: 0,
        };
        match frame {
            Frame::Confirm { up_to, .. } => {
                if order == ViewOrder::Same || !uses.view_of_confirmations {
                    proxy.keeper.confirmed(origin, up_to);
                }
            }
            Frame::Change {
                view,
                sequence,
                stamp,
                value,
            } => {
                let kept = Kept {
                    from,
                    link: number,
                    view,
                    sequence,
                    stamp,
                    value,
                };
                if let (ViewOrder::Behind(mine), true) = (order, uses.view_of_changes) {
                    return self.say(at, &kept, Said::View(mine));
                }
                if !proxy
                    .keeper
                    .arrived(origin, sequence, stamp, (POOL, KEY, HASH), 0)
                {
                    self.refused = uses.view_of_changes;
                    return;
                }
                match proxy.is_locked() {
                    true => proxy.waiting.push(Waiting::Kept(kept)),
                    false => self.judge(at, kept),
                }
            }
        }
    }

    /// A change of a peer, whose key is locked now.
    pub(crate) fn judge(&mut self, at: usize, kept: Kept) {
        use proxima::fleet::keeper::Fate;
        let Uses {
            winner_is_waited_for: waits,
            everybody_refuses,
            ..
        } = self.scope.uses;
        let proxy = self.proxy(at);
        let applied = if proxy.reads { Said::Applied } else { Said::Missed };
        let content = kept.value.map(|value| (value, kept.stamp));
        match proxy.keeper.judge(HASH, kept.stamp) {
            Fate::Store => self.send_to_copy(at, Sent::Write(content, Purpose::Kept(kept, applied))),
            Fate::Delete => self.send_to_copy(at, Sent::Write(None, Purpose::Kept(kept, applied))),
            Fate::Superseded if waits && !proxy.lane.is_empty() => {
                self.send_to_copy(at, Sent::Nothing(Purpose::Kept(kept, Said::Superseded)));
            }
            Fate::Superseded => self.say(at, &kept, Said::Superseded),
            Fate::Decided(_) if !everybody_refuses && proxy.keeper.home(HASH) != proxy.keeper.me() => {
                self.say(at, &kept, Said::Superseded);
            }
            Fate::Decided(stamp) => self.say(at, &kept, Said::Decided(stamp)),
        }
    }

    /// Says this of a change, on the link that it came by, if that is still there.
    pub(crate) fn say(&mut self, at: usize, kept: &Kept, said: Said) {
        if !self.proxies[at].alive {
            return;
        }
        let clock = self.proxies[at].keeper.clock();
        let link = &self.links[kept.from][at];
        if link.stays.is_some() && link.number == kept.link {
            let sequence = kept.sequence;
            self.link(kept.from, at).acks.push(Ack {
                sequence,
                clock,
                said,
            });
        }
    }

    /// A coordinator hears what a keeper said.
    pub(crate) fn take_ack(&mut self, at: usize, to: usize) {
        let link = self.link(at, to);
        let ack = link.acks.remove(0);
        let stay = link.stays.map(|stays| stays.1).unwrap_or_default();
        let proxy = self.proxy(at);
        let peer = proxy
            .keeper
            .view()
            .peers
            .iter()
            .find(|peer| number(&peer.name) == to);
        let Some(slot) = peer.map(|peer| peer.slot) else {
            return;
        };
        let _ = proxy.keeper.shared().see(ack.clock, 0);
        let verdict = match ack.said {
            Said::Applied | Said::Superseded | Said::Missed => Verdict::Taken,
            Said::View(view) => Verdict::Later(view),
            Said::Decided(stamp) => Verdict::Decided(stamp),
        };
        match proxy
            .keeper
            .acknowledge((slot, stay), ack.sequence, verdict, Micros::ZERO)
        {
            AckOutcome::Nothing => {}
            AckOutcome::Acknowledged { token } => {
                if let Some(operation) = proxy.operation(token) {
                    operation.answered |= ack.said == Said::Applied;
                    operation.superseded |= ack.said == Said::Superseded;
                }
                self.conclude(at, token);
            }
            AckOutcome::Again { token } => self.need_again(at, token),
        }
        self.send_changes(at);
    }

    /// Answers the client if every keeper of the view has the change.
    pub(crate) fn conclude(&mut self, at: usize, token: u64) {
        let proxy = self.proxy(at);
        let Some(operation) = proxy.operation(token) else {
            return;
        };
        if operation.own || operation.again {
            return;
        }
        let (change, client) = (operation.change, operation.client);
        let (answered, superseded) = (operation.answered, operation.superseded);
        if proxy.keeper.awaited(change) > 0 {
            return;
        }
        if !answered && superseded && client.is_some() {
            if let Some(operation) = proxy.operation(token) {
                (operation.again, operation.superseded) = (true, false);
            }
            return self.draw_again(at, token);
        }
        proxy.keeper.finish(change);
        proxy.operations.retain(|one| one.token != token);
        if let Some(client) = client {
            self.clients.0[client].progress = match answered {
                true => Progress::Done,
                false => Progress::Failed,
            };
        }
        self.end_decisions(at);
        self.confirm(at);
    }
}
