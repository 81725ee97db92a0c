//! Open files: how many are needed, for how many clients there is room where fewer are allowed, and what is told when they
//! run out.

use std::time::{Duration, Instant};

use rustix::process::{Resource, getrlimit, setrlimit};

use super::Proxy;
use crate::upstream::BULK_LANES;

/// Between two lines of the log about descriptors that ran out.
const QUIET: Duration = Duration::from_secs(30);

/// What the process may open, and what was told of it.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// What a warning was given for: needed, and allowed.
    warned: Option<(u64, u64)>,
    /// When it was last logged that they ran out.
    logged: Option<Instant>,
}

/// Who takes descriptors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Need {
    pub(super) clients: usize,
    pub(super) workers: usize,
    pub(super) members: usize,
}

impl Need {
    /// All lanes to all members, listeners, files, probes, the admin port.
    fn without_clients(self) -> u64 {
        (self.workers * (self.members * (1 + BULK_LANES) + 16) + 256) as u64
    }

    fn all(self) -> u64 {
        self.clients as u64 + self.without_clients()
    }

    /// For how many clients there is room below `limit`. Servers come first, as clients are there for them; but where the limit
    /// is very low, only one lane to each member is counted on, and a quarter is left to clients whatever the servers need.
    fn room(self, limit: u64) -> u64 {
        let least = (self.workers * (self.members + 6) + 32) as u64;
        let kept = self.without_clients().min(least.max(limit / 2));
        limit.saturating_sub(kept).max(limit / 4)
    }
}

impl Descriptors {
    /// Raises the limit of the process to what may be needed, as far as it is allowed to; returns for how many clients there
    /// is room then.
    pub(super) fn provide(&mut self, need: Need) -> u64 {
        // Without a limit for clients there is none to keep to: as many files as there may be.
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
            tracing::warn!(
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
    /// Descriptors ran out, for this reason: logged once in a while.
    pub(super) fn log_shortage(&self, why: &str) {
        let now = Instant::now();
        let logged = &mut self.state().descriptors.logged;
        if logged.is_none_or(|logged| now.duration_since(logged) >= QUIET) {
            *logged = Some(now);
            let limit = getrlimit(Resource::Nofile).current;
            tracing::warn!(
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
