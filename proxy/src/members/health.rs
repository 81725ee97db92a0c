//! Whether a member may be asked. Failures are counted for the process: those of all workers add up.

use std::{
    sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed},
    time::Duration,
};

use serde::Serialize;

/// Why a request to a member failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// There was no answer in time: the member may be slow, frozen or far.
    Timeout,
    /// The connection broke, or could not be made in time.
    Connection,
    /// The connection was refused: no process listens there. This is certain, while the other failures are
    /// only grounds for suspicion.
    Refused,
    /// Malformed reply.
    Garbage,
    /// The server does not accept the proxy's login, and will not until an operator corrects it. This is
    /// certain, too.
    Login,
}

/// What a member may be asked. It is shown to operators; [`Health::is_up`] decides.
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

/// When a member is ejected and how it is probed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eject {
    /// Failures in a row after which a member is ejected on suspicion; 0: never.
    pub failures: u32,
    /// Time from the ejection to the first probe.
    pub probe_initial: Duration,
    /// Longest time between two probes.
    pub probe_max: Duration,
}

/// The health of one server, shared by all workers and by every pool that names the server.
#[derive(Debug)]
pub struct Health {
    /// A [`HealthState`], or [`GONE`]. A failure only ever makes it worse.
    state: AtomicU8,
    /// Failures since the last success.
    failures: AtomicU32,
    ejections: AtomicU64,
    eject: Eject,
}

impl Health {
    /// The health of a server that counts as up until it fails.
    pub fn new(eject: Eject) -> Self {
        Self {
            state: AtomicU8::new(HealthState::Up as u8),
            failures: AtomicU32::new(0),
            ejections: AtomicU64::new(0),
            eject,
        }
    }

    /// The health of a server without a known address.
    pub fn nowhere(eject: Eject) -> Self {
        let health = Self::new(eject);
        health.state.store(GONE, Relaxed);
        health
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

    /// The state for operators. [`Self::is_up`] decides who is asked.
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

    /// The rule by which it is ejected.
    pub fn eject(&self) -> &Eject {
        &self.eject
    }

    /// Records a good reply. It costs one load while nothing was wrong.
    #[inline]
    pub fn succeeded(&self) {
        if self.failures.load(Relaxed) != 0 {
            self.failures.store(0, Relaxed);
            // Only a probe brings an ejected member back: a late good reply is no sign of health.
            let _ = self.state.compare_exchange(
                HealthState::Suspect as u8,
                HealthState::Up as u8,
                Relaxed,
                Relaxed,
            );
        }
    }

    /// Records a failure. Returns whether this one ejects the member, so that one thread reports it and
    /// starts the probes.
    pub fn failed(&self, failure: Failure) -> bool {
        let failures = self.failures.fetch_add(1, Relaxed).saturating_add(1);
        let state = match failure {
            Failure::Refused => GONE,
            Failure::Login => HealthState::Ejected as u8,
            _ if self.eject.failures == 0 => return false,
            Failure::Timeout | Failure::Garbage if failures < self.eject.failures => {
                HealthState::Suspect as u8
            }
            _ => HealthState::Ejected as u8,
        };
        let ejected = HealthState::Ejected as u8;
        let first = self.state.fetch_max(state, Relaxed) < ejected && state >= ejected;
        if first {
            self.ejections.fetch_add(1, Relaxed);
        }
        first
    }

    /// Records a good answer to a probe. Returns whether it brings the member back.
    pub fn revived(&self) -> bool {
        self.failures.store(0, Relaxed);
        self.state.swap(HealthState::Up as u8, Relaxed) >= HealthState::Ejected as u8
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn health(failures: u32) -> Health {
        Health::new(Eject {
            failures,
            probe_initial: Duration::from_secs(1),
            probe_max: Duration::from_secs(30),
        })
    }

    #[test]
    fn time_outs_eject_after_the_limit_and_a_success_begins_anew() {
        let health = health(3);
        assert!(!health.failed(Failure::Timeout) && !health.failed(Failure::Timeout));
        assert_eq!(health.state(), HealthState::Suspect);
        health.succeeded();
        assert_eq!(health.state(), HealthState::Up);
        assert!(
            !health.failed(Failure::Timeout)
                && !health.failed(Failure::Timeout)
                && health.failed(Failure::Timeout)
        );
        assert!(!health.is_up());
        assert!(!health.failed(Failure::Timeout), "ejected once, reported once");
    }

    #[test]
    fn a_lost_connection_ejects_at_once_and_only_a_probe_brings_it_back() {
        for (failure, gone) in [(Failure::Connection, false), (Failure::Refused, true)] {
            let health = health(3);
            assert!(health.failed(failure));
            health.succeeded();
            assert_eq!((health.is_up(), health.is_gone()), (false, gone));
            assert!(health.revived() && !health.revived(), "it comes back once");
            assert_eq!(
                (health.state(), health.failures(), health.ejections()),
                (HealthState::Up, 0, 1)
            );
        }
    }

    #[test]
    fn what_is_certain_is_not_lost_to_suspicion() {
        let health = health(1);
        assert!(health.failed(Failure::Timeout) && !health.is_gone());
        assert!(!health.failed(Failure::Refused) && health.is_gone());
        health.failed(Failure::Timeout);
        assert!(health.is_gone());
        assert_eq!((health.state(), health.ejections()), (HealthState::Ejected, 1));
    }

    #[test]
    fn zero_failures_means_never_on_suspicion() {
        let health = health(0);
        for failure in [Failure::Timeout, Failure::Garbage, Failure::Connection] {
            assert!(!health.failed(failure) && health.is_up());
        }
        assert!(health.failed(Failure::Refused) && !health.is_up());
    }
}
