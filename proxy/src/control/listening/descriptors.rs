//! Open files: how many the process needs, how many clients there is room for where fewer are allowed, and
//! the warnings when they run out.

use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use crate::{control::Proxy, upstream::BULK_LANES};

use crate::event_log::kind;

/// Time between two log lines about a shortage of descriptors.
const QUIET: Duration = Duration::from_secs(30);

/// The warnings that were given about the limit of open files.
#[derive(Debug, Default)]
pub(in crate::control) struct Descriptors {
    /// The numbers of the last warning: descriptors needed, and descriptors allowed.
    warned: Option<(u64, u64)>,
    /// The time of the last log line about a shortage.
    logged: Option<Instant>,
}

/// What the process needs descriptors for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::control) struct Need {
    pub(in crate::control) clients: usize,
    pub(in crate::control) workers: usize,
    pub(in crate::control) members: usize,
}

impl Need {
    /// Descriptors for everything but clients: all lanes to all members, listeners, files, probes and the
    /// admin port.
    fn without_clients(self) -> u64 {
        (self.workers * (self.members * (1 + BULK_LANES) + 16) + 256) as u64
    }

    fn all(self) -> u64 {
        self.clients as u64 + self.without_clients()
    }

    /// The number of clients for which there is room below `limit`. Servers come first, as clients connect
    /// for their sake. Where the limit is very low, only one lane to each member is counted, and a quarter of
    /// the limit is left to clients whatever the servers need.
    fn room(self, limit: u64) -> u64 {
        let least = (self.workers * (self.members + 6) + 32) as u64;
        let kept = self.without_clients().min(least.max(limit / 2));
        limit.saturating_sub(kept).max(limit / 4)
    }
}

impl Descriptors {
    /// Raises the limit of the process to the number that may be needed, as far as the system allows. Returns
    /// the number of clients for which there is room then.
    pub(in crate::control) fn provide(&mut self, need: Need) -> u64 {
        // Without a limit on clients there is no number to reach: this many files are asked for.
        const UNLIMITED: usize = 1 << 20;
        let unlimited = need.clients >= UNLIMITED;
        let need = Need {
            clients: need.clients.min(UNLIMITED),
            ..need
        };
        let needed = need.all();
        let mut limit = getrlimit(Resource::Nofile);
        if let Some(current) = limit.current.filter(|&current| current < needed) {
            limit.current = Some(limit.maximum.map_or(needed, |maximum| maximum.min(needed)));
            if setrlimit(Resource::Nofile, limit).is_err() {
                limit.current = Some(current);
            }
        }
        let allowed = limit.current.unwrap_or(u64::MAX);
        let room = need.room(allowed);
        if allowed < needed && !unlimited && self.warned != Some((needed, allowed)) {
            self.warned = Some((needed, allowed));
            tracing::warn!(target: kind::DESCRIPTORS,
                needed,
                allowed,
                clients = room.min(need.clients as u64),
                "fewer open files are allowed than clients and servers may need; clients beyond this number wait until others \
                 leave: raise `ulimit -n` or lower limits.clients"
            );
        }
        room
    }
}

impl Proxy {
    /// Logs a shortage of descriptors, at most once in [`QUIET`].
    pub(in crate::control) fn log_shortage(&self, why: &str) {
        let now = Instant::now();
        let logged = &mut self.rooms().listening.descriptors.logged;
        if logged.is_none_or(|logged| now.duration_since(logged) >= QUIET) {
            *logged = Some(now);
            let limit = getrlimit(Resource::Nofile).current;
            tracing::warn!(target: kind::DESCRIPTORS,
                why,
                limit,
                "descriptors run out: clients wait, or requests fail, until some are free; raise `ulimit -n` or lower limits.clients"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn clients_leave_room_for_every_lane_or_where_that_is_too_much_for_the_shared_ones() {
        let need = |workers, members| Need {
            clients: 10_000,
            workers,
            members,
        };
        for (workers, members, limit, room) in [
            (2, 3, 20_000, 20_000 - (2 * 31 + 256)),
            (4, 20, 1024, 512),
            (2, 3, 64, 16),
            (1, 3, 64, 64 - 41),
            (32, 20, 1024, 256),
            (4, 1000, 1024, 256),
        ] {
            assert_eq!(
                need(workers, members).room(limit),
                room,
                "{workers} × {members} of {limit}"
            );
        }
        assert_eq!(need(2, 3).room(u64::MAX), u64::MAX - (2 * 31 + 256));
    }
}
