//! The near cache: replies of servers, kept as the bytes that clients get, and never older than a change that
//! was acknowledged to a client of this process.
//!
//! ```text
//!  words   version and changes under way, for each of 65,536 sets of keys: they guard fills
//!  change  one change: it bumps its words, removes its keys, and ends with the server's answer
//!  rule    which keys are kept, for how long: settings that change while the process runs
//!  rules   all of a configuration, and which of them stay the same with the next one
//!  store   the kept replies of all rules, in shards with a lock each
//!  origin  what is asked of HTTP origins, and how long their replies may be kept
//!  ready   which workers count their changes: nothing is kept before all of them do
//! ```
//!
//! **Words guard fills, removal guards kept replies.** A fill notes its word before its request is sent. Its
//! reply is kept only if the word is the same by then and no change of it is under way. A change bumps the
//! word first, then removes the key, and then it is sent. A reply in the store was therefore inserted while
//! no change of its key had begun since its request was sent. A change that begins later removes the reply
//! before any server can execute the change. Keys that share a word cost each other a refused fill at most.

mod change;
mod key_hash;
#[cfg(test)]
mod model;
mod origin;
mod ready;
mod rule;
mod rules;
mod store;
mod words;
mod worker;

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use self::key_hash::KeyHash;
pub use self::{
    change::{Changes, OpenChange},
    key_hash::BuildKeyHasher,
    origin::{ERROR, Failure, Fetch, Fields, HttpOrigin, OriginReply, Terms, VALUE, Validator, freshness},
    ready::Ready,
    rule::{Rule, RuleSettings},
    rules::{ConfiguredRule, Rules},
    store::{
        Answer, Bytes, Entries, EntryReport, Fill, HotKey, Lookup, OwnedQuestion, Passes, Preload, Question,
        Refusal, RemovalReason, RuleUsage, SMALL, Store, StoredValue, Usage,
    },
    words::{Note, Words},
    worker::{LINGER, WorkerNear},
};

/// The near cache of the process, which its workers share.
pub struct Near {
    /// The words, which guard fills.
    pub words: Arc<Words>,
    /// The kept replies.
    pub store: Store,
    /// Which workers count their changes.
    pub ready: Ready,
    scripts_keep_to_keys: AtomicBool,
}

impl fmt::Debug for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Near").finish_non_exhaustive()
    }
}

impl Near {
    /// A near cache without entries. `memory`: its limit in bytes. `seed` keeps clients that know this
    /// program from choosing keys that collide: draw it at random.
    pub fn new(memory: usize, seed: [u64; 4]) -> Self {
        let words = Arc::new(Words::default());
        Self {
            store: Store::new(memory, Arc::clone(&words), seed),
            ready: Ready::default(),
            scripts_keep_to_keys: AtomicBool::new(false),
            words,
        }
    }

    /// Do scripts change the keys that they are given, and no others?
    pub fn scripts_keep_to_keys(&self) -> bool {
        self.scripts_keep_to_keys.load(Relaxed)
    }

    /// Sets what scripts change.
    pub fn set_scripts(&self, keep_to_keys: bool) {
        self.scripts_keep_to_keys.store(keep_to_keys, Relaxed);
    }
}
