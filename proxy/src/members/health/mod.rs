//! The health of members, which decides whether they are asked. Failures are counted for the process: those
//! of all workers add up.

mod ejection;

use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

use serde::Serialize;

pub use self::ejection::{Eject, Failure};
use super::{Quota, Turn};
use crate::protocol::SharedCount;

/// Changes of the set of members that are up, of all pools of the process.
static CHANGES: AtomicU64 = AtomicU64::new(0);

/// The number of changes of the set of members that are up. An unchanged number means an unchanged set of
/// live members.
#[inline]
pub fn changes() -> u64 {
    CHANGES.load(Acquire)
}

/// Notes that the set of members that are up has changed.
pub(in crate::members) fn note_change() {
    CHANGES.fetch_add(1, Release);
}

/// The state of a member's health. It is shown to operators; [`Health::is_up`] decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
#[repr(u8)]
pub enum HealthState {
    /// Any request.
    Up = 0,
    /// Any request, although it failed lately.
    Suspect = 1,
    /// Only probes.
    Ejected = 2,
}

/// A state beyond [`HealthState::Ejected`], which operators see as the same: no process listens there.
const GONE: u8 = 3;

/// The health of one server, shared by all workers and by every pool that names the server.
#[derive(Debug)]
pub struct Health {
    /// A [`HealthState`], or [`GONE`]. A failure only ever makes it worse.
    state: AtomicU8,
    /// Failures since the last success.
    failures: AtomicU32,
    ejections: AtomicU64,
    /// When the last lost connection was counted, in µs; 0: none was.
    counted: AtomicU64,
    /// When it was last ejected, in µs since 1970; 0: never.
    ejected_at: AtomicU64,
    /// It was last ejected because it was late, and not because a connection was lost or refused.
    was_late: AtomicBool,
    /// It was last ejected because it did not accept the proxy's login.
    was_login: AtomicBool,
    /// Nothing has come from it since the last [listen](Self::listen).
    listens: AtomicBool,
    /// The number of the last question to it, and that of the last one behind which bytes have come from it.
    /// They count for all questions before.
    asked: AtomicU32,
    heard: AtomicU32,
    /// Commands that let their client wait, and themselves wait for a connection that is being made.
    opening: AtomicU32,
    /// The connections to it that clients have for themselves.
    quota: Quota,
    /// The connection to it by which something is ended there.
    cancels: Turn,
    /// The statements that it has prepared for the proxy.
    prepared: SharedCount,
    eject: Eject,
}

impl Health {
    /// The health of a server that counts as up until it fails.
    pub fn new(eject: Eject) -> Self {
        Self {
            state: AtomicU8::new(HealthState::Up as u8),
            failures: AtomicU32::new(0),
            ejections: AtomicU64::new(0),
            counted: AtomicU64::new(0),
            ejected_at: AtomicU64::new(0),
            was_late: AtomicBool::new(false),
            was_login: AtomicBool::new(false),
            listens: AtomicBool::new(false),
            asked: AtomicU32::new(0),
            heard: AtomicU32::new(0),
            opening: AtomicU32::new(0),
            quota: Quota::default(),
            cancels: Turn::default(),
            prepared: SharedCount::default(),
            eject,
        }
    }

    /// The health of a server without a known address.
    pub fn nowhere(eject: Eject) -> Self {
        let health = Self::new(eject);
        health.state.store(GONE, Relaxed);
        health
    }

    /// Whether its last ejection was for being late; otherwise a connection was lost or refused.
    pub fn was_late(&self) -> bool {
        self.was_late.load(Relaxed)
    }

    /// Whether its last ejection was for not accepting the proxy's login.
    pub fn was_login(&self) -> bool {
        self.was_login.load(Relaxed)
    }

    /// It is asked something. Returns the number of the question: whatever comes from now on counts for it.
    pub fn listen(&self) -> u32 {
        let question = self.asked.fetch_add(1, Relaxed).wrapping_add(1);
        self.listens.store(true, Relaxed);
        question
    }

    /// Bytes have come from it.
    pub fn heard(&self) {
        // Workers that serve the same server write the same words: once is enough.
        if self.listens.load(Relaxed) {
            self.listens.store(false, Relaxed);
            self.heard.store(self.asked.load(Relaxed), Relaxed);
        }
    }

    /// Have bytes come from it since it was asked this question? Other questions may have been asked since.
    pub fn is_heard(&self, question: u32) -> bool {
        let behind = self.heard.load(Relaxed).wrapping_sub(question);
        behind <= u32::MAX / 2
    }

    /// A connection is being made for a command that lets its client wait.
    pub fn begin_opening(&self) {
        self.opening.fetch_add(1, Relaxed);
    }

    /// The connection that was being opened is established, or has failed.
    pub fn end_opening(&self) {
        let less = |opening: u32| opening.checked_sub(1);
        let _ = self.opening.fetch_update(Relaxed, Relaxed, less);
    }

    /// The number of such connections that are being made, by all workers.
    pub fn opening(&self) -> u32 {
        self.opening.load(Relaxed)
    }

    /// The connections to it that clients have for themselves, of all workers.
    pub fn quota(&self) -> &Quota {
        &self.quota
    }

    /// The connection to it by which something is ended there, of all workers.
    pub fn cancels(&self) -> &Turn {
        &self.cancels
    }

    /// The statements that it has prepared on connections of all workers.
    pub fn prepared(&self) -> &SharedCount {
        &self.prepared
    }

    /// Whether it may be asked.
    #[inline]
    pub fn is_up(&self) -> bool {
        self.state.load(Relaxed) < HealthState::Ejected as u8
    }

    /// Whether it is certain that a request would fail.
    pub fn is_gone(&self) -> bool {
        self.state.load(Relaxed) == GONE
    }

    /// The state for operators. [`Self::is_up`] decides whether it is asked.
    pub fn state(&self) -> HealthState {
        match self.state.load(Relaxed) {
            0 => HealthState::Up,
            1 => HealthState::Suspect,
            _ => HealthState::Ejected,
        }
    }

    /// Failures since the last success.
    pub fn failures(&self) -> u32 {
        self.failures.load(Relaxed)
    }

    /// The number of ejections.
    pub fn ejections(&self) -> u64 {
        self.ejections.load(Relaxed)
    }

    /// When it was last ejected, in µs since 1970; 0: never.
    pub fn ejected_at(&self) -> u64 {
        self.ejected_at.load(Relaxed)
    }

    /// Notes when it was ejected, in µs since 1970.
    pub fn set_ejected_at(&self, unix: u64) {
        self.ejected_at.store(unix, Relaxed);
    }

    /// The rule by which it is ejected.
    pub fn eject(&self) -> &Eject {
        &self.eject
    }
}
