//! Changes of peers, for the own copy.

use std::rc::Rc;

use proxima_wire::{
    fleet::{Ack, Change, Verdict},
    message::{Outcome, Parsed, Request},
};

use super::{
    LockMode, NO_FLEET, Task, member,
    task::{Keep, Work},
};
use crate::{
    copies::path::{
        change::RETRY,
        operation::{Operation, Stage, is_missed},
    },
    engine::{Endpoint, Engine, LinkId, ReplyTo, Sleeper, TaskId},
    fleet::{
        Stamp,
        keeper::{Fate, Origin as From},
    },
    members::Locality,
    peers::FrameOutcome,
    route::{Answer, FleetPool, NodeId, Origin, Tree, Walk},
};

impl Engine {
    /// A change has come from a peer, in this worker's view.
    pub(super) fn keep(&mut self, link: LinkId, from: From, change: &Change<'_>) -> FrameOutcome {
        let unix = self.unix_micros();
        let tree = Rc::clone(&self.tree);
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return FrameOutcome::Wrong("this proxy is in no fleet");
        };
        let stamp = Stamp::from_bits(change.stamp);
        let found = fleet.pools.get(&change.pool).copied();
        let found = found.and_then(|node| Some((node, tree.copies(node)?.fleet.as_ref()?)));
        let hash = found.map_or(0, |(_, fleet_pool)| fleet_pool.key_hash(change.key));
        let changed = (change.pool, change.key, hash);
        if !fleet.keeper.arrived(from, change.sequence, stamp, changed, unix) {
            return FrameOutcome::Wrong("a change that it may not send");
        }
        let Some((node, fleet_pool)) = found else {
            // There is no such copy here. When there is one, it begins empty.
            self.acknowledge_change(link, change.sequence, Verdict::Missed);
            return FrameOutcome::Done;
        };
        let Some((_, request)) = fleet_pool.head(change.message) else {
            return FrameOutcome::Wrong("a change that cannot be read");
        };
        let mut lock = self.copies.holder.lock(change.key, LockMode::AtOnce);
        let goes = lock.try_lock();
        let now = self.now;
        let mut keep = fleet.spare_keeps.pop().unwrap_or_default();
        keep.begin(from, stamp, hash, change.key, fleet.keeper.view().number);
        keep.place = Some((tree, node, lock));
        keep.since = now;
        if !goes {
            keep.message.extend_from_slice(change.message);
        }
        let id = fleet.tasks.insert(|generation| Task {
            generation,
            link,
            number: change.sequence,
            work: Work::Keep(keep),
        });
        match goes {
            true => self.apply_kept(id, &request, change.message),
            false => self.timers.wake(now + RETRY, Sleeper::Task(id)),
        }
        FrameOutcome::Done
    }

    /// Looks again whether a change of a peer may be applied.
    pub(crate) fn go_on_keeping(&mut self, id: TaskId) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let view = fleet.keeper.view().number;
        let Some(task) = fleet.tasks.get_mut(id) else {
            return;
        };
        let (link, number) = (task.link, task.number);
        let Work::Keep(keep) = &mut task.work else { return };
        if fleet.links.get(link).is_none() {
            return self.forget_task(id);
        }
        if keep.view != view {
            // The fence: nothing of an older view reaches the copy. Its coordinator sends it again.
            self.acknowledge_change(link, number, Verdict::View(view));
            return self.forget_task(id);
        }
        let Some((tree, node, lock)) = &mut keep.place else {
            return;
        };
        if !lock.try_lock() {
            return self.timers.wake(self.now + RETRY, Sleeper::Task(id));
        }
        let (tree, node) = (Rc::clone(tree), *node);
        let message = std::mem::take(&mut keep.message);
        let fleet_pool = tree.copies(node).and_then(|copies| copies.fleet.as_ref());
        match fleet_pool.and_then(|fleet_pool| fleet_pool.head(&message)) {
            Some((_, request)) => self.apply_kept(id, &request, &message),
            None => self.forget_task(id),
        }
    }

    /// Applies a change of a peer, whose key is locked, if it is the newest.
    fn apply_kept(&mut self, id: TaskId, request: &Request, message: &[u8]) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let Some(task) = fleet.tasks.get_mut(id) else {
            return;
        };
        let (link, number) = (task.link, task.number);
        let Work::Keep(keep) = &task.work else { return };
        let Some((tree, node, _)) = &keep.place else {
            return;
        };
        let (tree, node) = (Rc::clone(tree), *node);
        let Some(copies) = tree.copies(node) else {
            return self.forget_task(id);
        };
        let Some(fleet_pool) = &copies.fleet else { return };
        let is_flush = keep.key.is_empty();
        let keep_key = (fleet_pool.hash, keep.hash);
        let mut removal = Vec::new();
        match fleet.keeper.judge(keep.hash, keep.stamp) {
            Fate::Store => {}
            Fate::Delete if is_flush => {}
            Fate::Delete => copies.copied.removal(&keep.key, &mut removal),
            Fate::Superseded if self.is_being_written(keep_key) => {
                self.keep_for_later(id, message);
                return self.timers.wake(self.now + RETRY, Sleeper::Task(id));
            }
            Fate::Superseded => {
                self.metrics.fleet.superseded += 1;
                self.acknowledge_change(link, number, Verdict::Superseded);
                return self.forget_task(id);
            }
            Fate::Decided(stamp) => {
                self.acknowledge_change(link, number, Verdict::Decided(stamp.bits()));
                return self.forget_task(id);
            }
        }
        if is_flush {
            fleet.keeper.shared().raise_floor(keep.stamp);
        }
        let Some(&own) = copies.children.first() else {
            self.acknowledge_change(link, number, Verdict::Missed);
            return self.forget_task(id);
        };
        if !self.is_own_written(&tree, copies) {
            return self.miss_kept(id, "");
        }
        let protocol = fleet_pool.protocol;
        let removing;
        let (request, message) = match protocol.head(&removal) {
            Parsed::Head(remove) if !removal.is_empty() => {
                removing = remove;
                (&removing, removal.as_slice())
            }
            _ => (request, message),
        };
        if let Some(keep) = self.kept(id) {
            keep.is_sent = true;
        }
        let walk = Walk {
            tree: &tree,
            origin: Origin {
                listener: 0,
                form: 0,
                login: 0,
                locality: Locality::NONE,
                client: None,
                protocol,
                hides_prefix: false,
            },
            request,
            message,
            to: ReplyTo::Peer { task: id },
        };
        self.walk(own, &walk);
    }

    fn kept(&mut self, id: TaskId) -> Option<&mut Keep> {
        match &mut self.copies.fleet.as_mut()?.tasks.get_mut(id)?.work {
            Work::Keep(keep) => Some(keep),
            Work::Answer => None,
        }
    }

    fn keep_for_later(&mut self, id: TaskId, message: &[u8]) {
        if let Some(keep) = self.kept(id) {
            keep.message.clear();
            keep.message.extend_from_slice(message);
        }
    }

    /// Is a change of this key on its way from this worker to the own copy? The workers' lock of the key does
    /// not show this: a worker shares it with itself. Until the copy has answered, its readers may find the
    /// value before.
    fn is_being_written(&self, (pool, hash): (u64, u64)) -> bool {
        let Some(fleet) = self.copies.fleet.as_ref() else {
            return false;
        };
        let is_kept =
            |task: &Task| matches!(&task.work, Work::Keep(keep) if keep.is_sent && keep.hash == hash);
        let is_own = |operation: &Operation| {
            let fleet_pool = operation
                .tree
                .copies(operation.node)
                .and_then(|copies| copies.fleet.as_ref());
            let is_written = matches!(operation.stage, Stage::Replicating { own: true, .. });
            let has_key = |fleet_pool: &FleetPool| {
                fleet_pool.hash == pool && fleet_pool.key_hash(&operation.key()) == hash
            };
            is_written && fleet_pool.is_some_and(has_key)
        };
        fleet.tasks.iter().any(|(_, task)| is_kept(task))
            || self
                .copies
                .operations
                .iter()
                .any(|(_, operation)| is_own(operation))
    }

    fn is_own_written(&self, tree: &Tree, copies: &crate::route::Copies) -> bool {
        member(tree, copies, 0).is_some_and(|own| self.copies.snapshot.state(own.id).is_written())
    }

    /// The own copy misses a change of a peer: it is acknowledged when no worker reads the copy any longer.
    fn miss_kept(&mut self, id: TaskId, why: &str) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let Some(Work::Keep(keep)) = fleet.tasks.get_mut(id).map(|task| &mut task.work) else {
            return;
        };
        let Some((tree, node, _)) = &keep.place else {
            return;
        };
        let (tree, node): (Rc<Tree>, NodeId) = (Rc::clone(tree), *node);
        let Some(own) = tree.copies(node).and_then(|copies| member(&tree, copies, 0)) else {
            return self.forget_task(id);
        };
        let outs = match self.tree.names(own.id) {
            true => Some(self.copies.snapshot.miss(own.id, &keep.key)),
            false => None,
        };
        keep.missed = Some((own.id, outs));
        if outs.is_some() {
            self.mark_stale(own, why);
        }
        self.settle_kept(id);
    }

    /// Acknowledges a change that the own copy misses, as soon as the copy is out.
    fn settle_kept(&mut self, id: TaskId) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let Some(task) = fleet.tasks.get(id) else { return };
        let (link, number) = (task.link, task.number);
        let Work::Keep(keep) = &task.work else { return };
        let Some((member, outs)) = keep.missed else {
            return;
        };
        if outs.is_some_and(|outs| !self.copies.snapshot.is_settled(member, outs)) {
            return fleet.unsettled.push(id);
        }
        self.acknowledge_change(link, number, Verdict::Missed);
        self.forget_task(id);
    }

    /// Looks again at changes of peers that wait for the own copy to be out.
    pub(in crate::copies::path) fn settle_tasks(&mut self) {
        let unsettled = self
            .copies
            .fleet
            .as_mut()
            .map(|fleet| std::mem::take(&mut fleet.unsettled));
        for id in unsettled.unwrap_or_default() {
            self.settle_kept(id);
        }
    }

    /// Something was done for a peer.
    pub(crate) fn answer_peer(&mut self, id: TaskId, answer: &Answer<'_>) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let Some(task) = fleet.tasks.get(id) else { return };
        let (link, number) = (task.link, task.number);
        match (&task.work, answer) {
            (Work::Answer, _) => {
                self.answer_ask(link, number, answer);
                self.forget_task(id);
            }
            (Work::Keep(_), Answer::Reply(_, bytes)) => {
                self.acknowledge_change(link, number, Verdict::Applied(bytes));
                self.forget_task(id);
            }
            (Work::Keep(_), Answer::Failed(failed)) => {
                debug_assert!(is_missed(failed.outcome) || failed.outcome != Outcome::Ok);
                let why = failed.what.to_owned();
                self.miss_kept(id, &why);
            }
        }
    }

    /// Tells a coordinator what became of its change.
    pub(super) fn acknowledge_change(&mut self, link: LinkId, sequence: u64, verdict: Verdict<'_>) {
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        let clock = fleet.keeper.clock().bits();
        if let Verdict::View(_) = verdict {
            self.metrics.fleet.refused_view += 1;
        }
        if let Some(open) = fleet.links.get_mut(link) {
            let ack = Ack {
                sequence,
                clock,
                verdict,
            };
            ack.write(open.stream.filling(&mut self.buffers));
            if open.stream.mark() {
                self.actions.flush.push(Endpoint::Link(link));
            }
        }
    }

    /// Removes a task that is done. A change leaves its buffers for the next one.
    pub(super) fn forget_task(&mut self, id: TaskId) {
        const SPARE: usize = 1024;
        let Some(fleet) = self.copies.fleet.as_mut() else {
            return self.broken(NO_FLEET);
        };
        if let Some(Task {
            work: Work::Keep(mut keep),
            ..
        }) = fleet.tasks.remove(id)
        {
            keep.clear();
            if fleet.spare_keeps.len() < SPARE && keep.memory_bytes() <= 4096 {
                fleet.spare_keeps.push(keep);
            }
        }
    }
}

impl Keep {
    fn begin(&mut self, from: From, stamp: Stamp, hash: u64, key: &[u8], view: u64) {
        (self.from, self.stamp, self.hash, self.view) = (from, stamp, hash, view);
        self.key.extend_from_slice(key);
    }
}
