//! The question for the time that is left of a value, or only whether there is one: `metaget`, which servers with
//! leases know, or else `mg`, which memcached knows.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering::Relaxed},
};

use proxima_wire::{memcache::item, message::Outcome};

use crate::route::{Answer, tree::ScriptRequest};

/// The form of the question. The one that a server has answered is the first one for the next request.
#[derive(Clone, Debug, Default)]
pub(in crate::route) struct TimeLeft {
    is_meta: Arc<AtomicBool>,
    /// The form of the question that was asked last. Others may meanwhile have found the other form.
    asked: bool,
    /// It was asked in one form in vain.
    is_second: bool,
}

/// What a server knows of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum KnownExpiry {
    /// It has a value, with this expiry time; `None`: it does not say when it expires.
    Value(Option<i64>),
    /// It has none.
    Nothing,
    /// It does not understand the question: it is asked in the other form.
    Again,
    /// It does not tell.
    Failed,
}

impl TimeLeft {
    /// The question.
    pub(super) fn question(&mut self, key: &[u8]) -> Vec<u8> {
        self.asked = match self.is_second {
            true => !self.asked,
            false => self.is_meta.load(Relaxed),
        };
        match self.asked {
            true => item::ask_left(key),
            false => item::of_key("metaget", key),
        }
    }

    /// Reads the answer.
    pub(super) fn answered(&mut self, asked: &ScriptRequest<'_>, answer: &Answer<'_>) -> KnownExpiry {
        match answer.outcome() {
            Outcome::ClientError if !self.is_second => {
                self.is_second = true;
                KnownExpiry::Again
            }
            outcome if outcome.is_error() => KnownExpiry::Failed,
            outcome => {
                self.is_meta.store(self.asked, Relaxed);
                match outcome {
                    Outcome::NotFound => KnownExpiry::Nothing,
                    _ => KnownExpiry::Value(item::expiry(answer.bytes(), asked.unix.as_secs())),
                }
            }
        }
    }
}
