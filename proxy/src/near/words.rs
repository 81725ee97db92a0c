//! The words that guard fills. A word stands for all keys with one hash, and one more word stands for
//! everything.

use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use super::KeyHash;
use crate::reactor::prefetch;

/// The number of words.
const WORDS: usize = 1 << 16;

/// A change under way. There is room for 2²⁴ of them: more cannot wait for servers in one process.
const OPEN: u64 = 1;
const OPEN_BITS: u32 = 24;
/// A key that is kept under the word. There is room for 2¹⁶ − 1.
const KEPT: u64 = 1 << OPEN_BITS;
const KEPT_BITS: u32 = 16;
const KEPT_MASK: u64 = ((1 << KEPT_BITS) - 1) << OPEN_BITS;
/// The version has the bits that are left. It begins anew after 2²⁴ changes; a fill would have to wait that
/// long for its reply to take the new version for its own.
const VERSION: u64 = 1 << (OPEN_BITS + KEPT_BITS);
const VERSION_MASK: u64 = !(VERSION - 1);

/// Versions of keys, and the changes of them that are under way.
///
/// Invariant: a word's version grows with each change that begins, before anything of the change can reach a
/// server, and its count of open changes is above zero until the change has ended.
pub struct Words {
    words: Box<[AtomicU64]>,
    /// For changes of unknown keys: 40 bits of version, 24 of changes under way.
    everything: AtomicU64,
}

/// The state of a word that a fill has noted before its request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    word: u64,
    everything: u64,
}

impl Note {
    /// The version of everything, which entries carry.
    pub(super) const fn everything(self) -> u64 {
        self.everything
    }
}

impl Default for Words {
    fn default() -> Self {
        Self {
            words: (0..WORDS).map(|_| AtomicU64::new(0)).collect(),
            everything: AtomicU64::new(0),
        }
    }
}

impl Words {
    fn word(&self, hash: KeyHash) -> &AtomicU64 {
        &self.words[hash.word()]
    }

    /// Begins to load the word of a key that will be asked for or changed soon.
    pub(super) fn preload(&self, hash: KeyHash) {
        prefetch(self.word(hash));
    }

    /// Begins to load a word that will be needed soon.
    pub(super) fn preload_number(&self, word: u16) {
        prefetch(&self.words[usize::from(word)]);
    }

    /// The note for a fill of this key. `None` if a change is under way, so that the reply could not be kept.
    pub(super) fn note(&self, hash: KeyHash) -> Option<Note> {
        // Everything is read first: a change that begins between both reads is seen by its word, or not
        // begun.
        let everything = self.everything.load(SeqCst);
        let word = self.word(hash).load(SeqCst);
        let is_quiet = everything & (KEPT - 1) == 0 && word & (KEPT - 1) == 0;
        is_quiet.then_some(Note {
            word: word & VERSION_MASK,
            everything,
        })
    }

    /// Is everything as it was noted, without a change that is under way?
    pub(super) fn is_same(&self, hash: KeyHash, note: Note) -> bool {
        self.note(hash) == Some(note)
    }

    /// Counts one more key that is kept under its word, if nothing has changed since the note. The key's
    /// shard is locked. Returns whether the key may be kept.
    pub(super) fn admit(&self, hash: KeyHash, note: Note, is_new: bool) -> bool {
        let word = self.word(hash);
        let admitted = word.fetch_update(SeqCst, SeqCst, |now| {
            let is_same = now & VERSION_MASK == note.word && now & (KEPT - 1) == 0;
            let has_room = now & KEPT_MASK != KEPT_MASK;
            match (is_same, is_new) {
                (true, true) if has_room => Some(now + KEPT),
                (true, false) => Some(now),
                _ => None,
            }
        });
        if admitted.is_err() {
            return false;
        }
        // A change of everything that begins after this is seen at hits, by its version.
        if self.everything.load(SeqCst) == note.everything {
            return true;
        }
        if is_new {
            self.discount(hash);
        }
        false
    }

    /// A key under this word is kept no more.
    pub(super) fn discount(&self, hash: KeyHash) {
        self.word(hash).fetch_sub(KEPT, SeqCst);
    }

    /// A change of keys with this hash begins. Returns whether any of them may be kept.
    pub(super) fn begin(&self, hash: KeyHash) -> bool {
        let word = self.word(hash);
        word.fetch_add(VERSION + OPEN, SeqCst) & KEPT_MASK != 0
    }

    /// A change has ended.
    pub(super) fn end(&self, word: u16) {
        self.words[usize::from(word)].fetch_sub(OPEN, SeqCst);
    }

    /// A change of everything begins.
    pub(super) fn begin_everything(&self) {
        self.everything.fetch_add(KEPT + OPEN, SeqCst);
    }

    /// A change of everything has ended.
    pub(super) fn end_everything(&self) {
        self.everything.fetch_sub(OPEN, SeqCst);
    }

    /// Was nothing changed wholesale since this version of everything was noted? The changes that are under
    /// way have begun, and count.
    #[inline]
    pub(super) fn is_current(&self, everything: u64) -> bool {
        self.everything.load(SeqCst) == everything
    }

    /// The number of changes that are under way. At rest it is zero.
    pub fn open(&self) -> u64 {
        let words = self.words.iter().map(|word| word.load(SeqCst) & (KEPT - 1));
        words.sum::<u64>() + (self.everything.load(SeqCst) & (KEPT - 1))
    }

    /// The number of keys that are kept.
    #[cfg(test)]
    pub(super) fn kept(&self) -> u64 {
        let words = self
            .words
            .iter()
            .map(|word| (word.load(SeqCst) & KEPT_MASK) >> OPEN_BITS);
        words.sum()
    }
}
