//! One proxy with its copy.

use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

use proxima::fleet::{
    Keeper, Stamp, Stay,
    keeper::{ChangeId, Rules, Shared},
};

use crate::client::Content;

/// A change that this proxy coordinates.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) token: u64,
    /// `None`: nobody waits for it, and it deletes the key.
    pub(crate) client: Option<usize>,
    pub(crate) change: ChangeId,
    pub(crate) stamp: Stamp,
    pub(crate) decided: bool,
    /// The own copy has not answered.
    pub(crate) own: bool,
    /// It waits for its key, to be sent again with a later stamp.
    pub(crate) again: bool,
    /// A copy has it.
    pub(crate) answered: bool,
    /// A keeper has a later change.
    pub(crate) superseded: bool,
}

impl Operation {
    /// What it makes of the key.
    pub(crate) fn value(&self) -> Option<u8> {
        self.client.map(|client| client as u8 + 1)
    }
}

/// A change that came from a peer.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Kept {
    pub(crate) from: usize,
    /// The number of the link that it came by.
    pub(crate) link: u8,
    pub(crate) view: u64,
    pub(crate) sequence: u64,
    pub(crate) stamp: Stamp,
    pub(crate) value: Option<u8>,
}

/// What a change of the own copy is for.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Purpose {
    Own(u64),
    Kept(Kept, crate::link::Said),
}

/// What is under way to the own copy.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Sent {
    /// The key is changed.
    Write(Content, Purpose),
    /// Nothing is changed; what was sent before has been answered.
    Nothing(Purpose),
    /// The copy decides for a client.
    Decide { client: usize, token: u64 },
}

/// What waits until a decision at the own copy has ended.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) enum Waiting {
    Kept(Kept),
    Again(u64),
    Orphan,
}

/// What a donor has given.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct Gift {
    pub(crate) stay: Stay,
    /// The key is to be deleted.
    pub(crate) missed: bool,
    pub(crate) clock: Stamp,
}

/// One proxy with its copy.
pub(crate) struct Proxy {
    pub(crate) alive: bool,
    pub(crate) process: u64,
    pub(crate) keeper: Keeper,
    pub(crate) lease: bool,
    /// What its memcached holds.
    pub(crate) copy: Content,
    /// The copy may be read.
    pub(crate) reads: bool,
    /// What is under way to the own copy, which keeps its order.
    pub(crate) lane: Vec<Sent>,
    /// What an earlier process or stay has sent to the copy, and the copy may still take.
    pub(crate) stray: Vec<Content>,
    pub(crate) operations: Vec<Operation>,
    pub(crate) waiting: Vec<Waiting>,
    /// It has no floor in this stay yet.
    pub(crate) joining: Option<Stay>,
    pub(crate) gift: Option<Gift>,
    /// The copy may hold what others do not.
    pub(crate) uncertain: bool,
    /// Nobody knows what the copy holds.
    pub(crate) unknown: bool,
    pub(crate) tokens: u64,
    /// The fingerprint of all this.
    pub(crate) print: u64,
}

impl Clone for Proxy {
    fn clone(&self) -> Self {
        Self {
            keeper: self.keeper.fork(),
            lane: self.lane.clone(),
            stray: self.stray.clone(),
            operations: self.operations.clone(),
            waiting: self.waiting.clone(),
            ..*self
        }
    }
}

/// The fingerprint of something.
pub(crate) fn print(it: &impl Hash) -> u64 {
    ahash::RandomState::with_seeds(1, 2, 3, 4).hash_one(it)
}

impl Proxy {
    /// A process that has just begun.
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            alive: true,
            process: 1,
            keeper: Keeper::with(Arc::new(Shared::small()), rules),
            lease: false,
            copy: Some((0, Stamp::ZERO)),
            reads: false,
            lane: Vec::new(),
            stray: Vec::new(),
            operations: Vec::new(),
            waiting: Vec::new(),
            joining: None,
            gift: None,
            uncertain: false,
            unknown: false,
            tokens: 0,
            print: 0,
        }
    }

    /// The change of this number.
    pub(crate) fn operation(&mut self, token: u64) -> Option<&mut Operation> {
        self.operations.iter_mut().find(|one| one.token == token)
    }

    /// Is the copy deciding?
    pub(crate) fn is_locked(&self) -> bool {
        self.lane.iter().any(|sent| matches!(sent, Sent::Decide { .. }))
    }

    /// The stamp that was drawn last.
    pub(crate) fn drawn(&self, decided: bool) -> Stamp {
        let slot = self.keeper.me().map_or_else(Default::default, |me| me.0);
        let stamp = Stamp::new(self.keeper.clock().micros() - 1, slot);
        if decided { stamp.decided() } else { stamp }
    }

    /// What was under way to the copy is not waited for any more, but may still land. Returns the clients for
    /// whom the copy decides.
    pub(crate) fn stray(&mut self) -> Vec<usize> {
        let mut deciding = Vec::new();
        for sent in std::mem::take(&mut self.lane) {
            match sent {
                Sent::Write(content, _) => self.stray.push(content),
                Sent::Nothing(_) => {}
                Sent::Decide { client, .. } => {
                    // It has no stamp, and is older than everything.
                    self.stray.push(Some((client as u8 + 1, Stamp::ZERO)));
                    deciding.push(client);
                }
            }
        }
        deciding
    }

    /// Takes the fingerprint anew.
    pub(crate) fn note(&mut self) {
        self.print = 0;
        self.print = print(self);
    }
}

impl Hash for Proxy {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.alive, self.process, self.lease, self.reads).hash(state);
        (self.uncertain, self.unknown, self.joining, self.tokens).hash(state);
        (self.copy, &self.lane, &self.stray, &self.waiting).hash(state);
        self.gift.hash(state);
        for one in &self.operations {
            (
                one.token,
                one.client,
                one.change.to_bits(),
                one.stamp,
                one.decided,
            )
                .hash(state);
            (one.own, one.again, one.answered, one.superseded).hash(state);
        }
        self.keeper.hash(state);
    }
}
