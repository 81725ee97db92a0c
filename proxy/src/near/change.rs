//! Changes under way, each of which ends with the server's answer.

use std::{rc::Rc, sync::Arc};

use super::{Near, words::Words};

/// How one thread counts its changes.
#[derive(Clone)]
pub struct Changes(Rc<ThreadChanges>);

/// The state that the changes of one thread share. Each change has a reference to it, which costs no access
/// to memory that other threads write.
struct ThreadChanges {
    near: Arc<Near>,
}

/// A change that is under way: of some keys, or of everything. It ends when it is dropped.
///
/// Invariant: it is made before anything of the change can reach a server, and is dropped when its answer is
/// taken off the lane, or later. A late end refuses a fill that could be kept; an early one keeps what is
/// stale.
pub struct OpenChange {
    counted: Rc<ThreadChanges>,
    of: ChangedKeys,
}

enum ChangedKeys {
    Key(u16),
    Keys(Box<[u16]>),
    Everything,
}

impl Changes {
    /// Counts the changes of one thread in this near cache.
    pub fn new(near: Arc<Near>) -> Self {
        Self(Rc::new(ThreadChanges { near }))
    }

    /// A change of this key, as the server sees it, begins.
    #[inline]
    pub fn of_key(&self, key: &[u8]) -> OpenChange {
        self.open(ChangedKeys::Key(self.begin(key)))
    }

    /// A change of these keys begins.
    pub fn of_keys<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> OpenChange {
        self.open(ChangedKeys::Keys(keys.map(|key| self.begin(key)).collect()))
    }

    /// Begins a change of unknown keys.
    pub fn of_everything(&self) -> OpenChange {
        self.0.near.words.begin_everything();
        self.open(ChangedKeys::Everything)
    }

    /// Do scripts change no keys but those that they are given?
    pub fn scripts_keep_to_keys(&self) -> bool {
        self.0.near.scripts_keep_to_keys()
    }

    #[inline]
    fn open(&self, of: ChangedKeys) -> OpenChange {
        OpenChange {
            counted: Rc::clone(&self.0),
            of,
        }
    }

    /// Bumps the key's word first, and removes the key then: what a fill inserts between both is removed.
    #[inline]
    fn begin(&self, key: &[u8]) -> u16 {
        let hash = self.0.near.store.hash(key);
        if self.0.near.words.begin(hash) {
            self.0.near.store.remove(hash, key);
        }
        hash.word() as u16
    }
}

impl OpenChange {
    fn words(&self) -> &Words {
        &self.counted.near.words
    }

    /// Begins to load what its end will need.
    #[inline]
    pub fn preload(&self) {
        if let ChangedKeys::Key(word) = self.of {
            self.words().preload_number(word);
        }
    }

    /// Bytes of memory beside the change itself.
    pub fn memory(&self) -> usize {
        match &self.of {
            ChangedKeys::Keys(words) => size_of_val(&**words),
            ChangedKeys::Key(_) | ChangedKeys::Everything => 0,
        }
    }
}

impl Drop for OpenChange {
    fn drop(&mut self) {
        match &self.of {
            ChangedKeys::Key(word) => self.words().end(*word),
            ChangedKeys::Keys(words) => words.iter().for_each(|&word| self.words().end(word)),
            ChangedKeys::Everything => self.words().end_everything(),
        }
    }
}
