//! The decision whether a failure ejects a member. Probes of the control thread bring it back
//! (`control/membership/ejections.rs`).

use std::{sync::atomic::Ordering::Relaxed, time::Duration};

use super::{GONE, Health, HealthState, note_change};
use crate::{config::schema::EjectBy, micros::Micros};

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

/// The conditions under which a member is ejected, and the way it is probed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Eject {
    /// The kinds of failures that count.
    pub by: EjectBy,
    /// Failures in a row after which a member is ejected on suspicion; 0: never.
    pub failures: u32,
    /// Time from the ejection to the first probe.
    pub probe_initial: Duration,
    /// Longest time between two probes.
    pub probe_max: Duration,
}

impl Health {
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
            self.was_late.store(failure == Failure::Timeout, Relaxed);
            self.was_login.store(failure == Failure::Login, Relaxed);
            self.ejections.fetch_add(1, Relaxed);
            note_change();
        }
        first
    }

    /// Records a lost connection where those are counted. `proven`: when the connection was made, or last
    /// brought a reply; or when the request was sent for which the server is late. One that was lost before
    /// the latest count belongs to the event that was counted: one event ends the connections of all workers.
    /// Returns whether this one ejects the member.
    pub fn lost(&self, proven: Micros, now: Micros) -> bool {
        let limit = self.eject.failures;
        let last = self.counted.load(Relaxed);
        let is_news = proven.0 >= last
            && self
                .counted
                .compare_exchange(last, now.0.max(1), Relaxed, Relaxed)
                .is_ok();
        if limit == 0 || !is_news || !self.is_up() {
            return false;
        }
        if self.failures.fetch_add(1, Relaxed).saturating_add(1) < limit {
            self.state.fetch_max(HealthState::Suspect as u8, Relaxed);
            return false;
        }
        self.failures.store(0, Relaxed);
        let ejected = HealthState::Ejected as u8;
        let first = self.state.fetch_max(ejected, Relaxed) < ejected;
        if first {
            self.ejections.fetch_add(1, Relaxed);
            note_change();
        }
        first
    }

    /// Records a good answer to a probe. Returns whether it brings the member back.
    pub fn revived(&self) -> bool {
        self.failures.store(0, Relaxed);
        let returns = self.state.swap(HealthState::Up as u8, Relaxed) >= HealthState::Ejected as u8;
        if returns {
            note_change();
        }
        returns
    }
}

#[cfg(test)]
mod tests {
    use super::{super::changes, *};

    fn health(failures: u32) -> Health {
        Health::new(Eject {
            by: EjectBy::Suspicion,
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
        assert!(!health.was_late());
        assert!(
            !health.failed(Failure::Timeout)
                && !health.failed(Failure::Timeout)
                && health.failed(Failure::Timeout)
        );
        assert!(!health.is_up() && health.was_late());
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
    fn lost_connections_eject_at_the_limit_and_those_of_one_event_count_once() {
        let counting = |failures| {
            Health::new(Eject {
                by: EjectBy::LostConnections,
                ..*health(failures).eject()
            })
        };
        let lost = |health: &Health, proven, now| health.lost(Micros(proven), Micros(now));
        let health = counting(2);
        assert!(!lost(&health, 10, 20));
        assert!(
            !lost(&health, 11, 21),
            "another worker's connection, which the same event has ended"
        );
        assert!(health.is_up() && health.failures() == 1);
        health.succeeded();
        assert!(!lost(&health, 30, 40), "a reply begins the count anew");
        let before = changes();
        assert!(
            lost(&health, 50, 50),
            "a connection that was made since then is another event"
        );
        assert!(!health.is_up() && changes() > before);
        assert!(!lost(&health, 60, 70), "what is ejected is not counted");
        assert!(health.revived());
        assert!(
            !lost(&health, 80, 90) && lost(&health, 90, 95),
            "it comes back with the whole limit"
        );
        assert_eq!(health.ejections(), 2);
        let never = counting(0);
        assert!(!lost(&never, 1, 2) && !lost(&never, 3, 4) && never.is_up());
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
