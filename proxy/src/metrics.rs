//! What a worker counts. Plain numbers of its own; asked for them, it hands out a copy.

use proxima_wire::message::Outcome;

use crate::members::{MemberId, PoolId};

/// Latency buckets: powers of two of a microsecond, the last one open.
pub const BUCKETS: usize = 26;

/// A latency histogram. The sum stands beside the buckets of fast replies: one line of memory to fetch, not two.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Latency {
    /// Microseconds in all.
    pub sum: u64,
    /// Bucket `i` counts what took less than 2^i µs (and at least half of that).
    pub buckets: [u64; BUCKETS],
}

impl Latency {
    #[inline]
    fn record(&mut self, micros: u64) {
        let bucket = (64 - micros.leading_zeros() as usize).min(BUCKETS - 1);
        self.buckets[bucket] += 1;
        self.sum += micros;
    }

    fn add(&mut self, other: &Self) {
        self.buckets
            .iter_mut()
            .zip(other.buckets)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Counts about clients.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    pub accepted: u64,
    pub closed: u64,
    /// Requests answered with an error without being routed.
    pub refused: u64,
    /// Requests streamed because of their size.
    pub uploads: u64,
    /// Closed because there were too many.
    pub over_limit: u64,
    /// Closed because they asked for nothing for too long.
    pub idle: u64,
    /// Closed because they took nothing of what they were due.
    pub slow: u64,
    /// Closed because the rest of a request did not come.
    pub unfinished: u64,
    /// Closed because they had closed their side, asked for much, and others waited for a descriptor.
    pub half_closed: u64,
    /// Closed because they held the most when there was no memory.
    pub greedy: u64,
}

/// Counts about one member. How long its replies took is counted by pool: a histogram for each of a hundred members is more
/// than anybody looks at.
#[derive(Clone, Debug, Default)]
pub struct MemberMetrics {
    /// Replies, and the microseconds that they took together.
    pub replies: u64,
    pub micros: u64,
    /// Error replies.
    pub errors: u64,
    /// Lanes that broke or were late.
    pub failures: u64,
    /// Writes that went on without this copy.
    pub skipped: u64,
    /// Gauges, filled in when a copy is handed out: lanes, and requests on them that are not answered.
    pub lanes: u64,
    pub waiting: u64,
}

impl MemberMetrics {
    pub fn failed(&mut self) {
        self.failures += 1;
    }

    fn add(&mut self, other: &Self) {
        self.replies += other.replies;
        self.micros += other.micros;
        self.errors += other.errors;
        self.failures += other.failures;
        self.skipped += other.skipped;
        self.lanes += other.lanes;
        self.waiting += other.waiting;
    }
}

/// Replies to clients, by the number of the command among those of all protocols, and outcome.
#[derive(Clone, Debug, Default)]
pub struct Replies(Vec<[u64; OUTCOMES]>);

/// An outcome's number is below this.
const OUTCOMES: usize = 32;

impl Replies {
    /// How often a command ended so.
    pub fn of(&self, command: usize, outcome: Outcome) -> u64 {
        self.0.get(command).map_or(0, |row| row[outcome as usize])
    }

    /// How often any command ended so.
    pub fn with(&self, outcome: Outcome) -> u64 {
        self.0.iter().map(|row| row[outcome as usize]).sum()
    }

    pub fn all(&self) -> u64 {
        self.0.iter().flatten().sum()
    }

    /// Keys that a command has found, and those that it has not.
    pub fn lookups(&self, command: usize) -> [u64; 2] {
        let hits = [Outcome::Found, Outcome::Deleted, Outcome::Touched];
        let hits = hits.iter().map(|&outcome| self.of(command, outcome)).sum();
        [hits, self.of(command, Outcome::NotFound)]
    }

    fn add(&mut self, other: &Self) {
        for (number, theirs) in other.0.iter().enumerate() {
            let mine = at(&mut self.0, number).iter_mut();
            mine.zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }
}

/// Bytes received and sent, counted for each receive and each flush. Those in a transform's form count as they are on the
/// wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    pub received: u64,
    pub sent: u64,
}

impl Traffic {
    fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }
}

/// All counts of one worker, or their sum over all workers.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    pub clients: Clients,
    /// By the number of the command among those of all protocols.
    pub requests: Vec<u64>,
    pub replies: Replies,
    /// With clients, and with servers.
    pub client_traffic: Traffic,
    pub server_traffic: Traffic,
    /// By listener.
    pub latency: Vec<Latency>,
    /// How long members took to reply, by pool number.
    pub pools: Vec<Latency>,
    /// By member number.
    pub members: Vec<MemberMetrics>,
    pub lanes_opened: u64,
    /// Times that there was no descriptor for a client, and for a connection to a server; by `Shortage`.
    pub shortages: [u64; 2],
    /// Requests that went on to another child after an error or a miss.
    pub failovers: u64,
    /// Messages of servers that nobody had asked for.
    pub pushes: u64,
    /// Gauges, filled in when a copy is handed out.
    pub open_clients: u64,
    /// Clients known to be on one NUMA node, on one socket, and anywhere on this host.
    pub located: [u64; 3],
    pub open_lanes: u64,
    pub in_flight: u64,
}

impl Metrics {
    /// A request of a client.
    #[inline]
    pub fn asked(&mut self, command: usize) {
        *at(&mut self.requests, command) += 1;
    }

    /// A reply to a client of this listener.
    #[inline]
    pub fn replied(&mut self, command: usize, outcome: Outcome, micros: u64, listener: u16) {
        at(&mut self.replies.0, command)[outcome as usize] += 1;
        at(&mut self.latency, usize::from(listener)).record(micros);
    }

    /// A member's reply.
    #[inline]
    pub fn served(&mut self, pool: PoolId, member: MemberId, micros: u64, failed: bool) {
        at(&mut self.pools, pool.0 as usize).record(micros);
        let member = self.member(member);
        member.replies += 1;
        member.micros += micros;
        member.errors += u64::from(failed);
    }

    #[inline]
    pub fn member(&mut self, id: MemberId) -> &mut MemberMetrics {
        at(&mut self.members, id.0 as usize)
    }

    /// This member is gone: its number may be given to another, who begins at 0.
    pub fn forget(&mut self, id: MemberId) {
        *self.member(id) = MemberMetrics::default();
    }

    /// Adds another worker's counts.
    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.clients, &other.clients);
        mine.accepted += theirs.accepted;
        mine.closed += theirs.closed;
        mine.refused += theirs.refused;
        mine.uploads += theirs.uploads;
        mine.over_limit += theirs.over_limit;
        mine.idle += theirs.idle;
        mine.slow += theirs.slow;
        mine.unfinished += theirs.unfinished;
        mine.half_closed += theirs.half_closed;
        mine.greedy += theirs.greedy;
        for (number, theirs) in other.requests.iter().enumerate() {
            *at(&mut self.requests, number) += theirs;
        }
        self.replies.add(&other.replies);
        self.client_traffic.add(other.client_traffic);
        self.server_traffic.add(other.server_traffic);
        for (number, theirs) in other.latency.iter().enumerate() {
            at(&mut self.latency, number).add(theirs);
        }
        for (number, theirs) in other.pools.iter().enumerate() {
            at(&mut self.pools, number).add(theirs);
        }
        for (number, theirs) in other.members.iter().enumerate() {
            at(&mut self.members, number).add(theirs);
        }
        self.lanes_opened += other.lanes_opened;
        (self.shortages.iter_mut().zip(other.shortages)).for_each(|(mine, theirs)| *mine += theirs);
        self.failovers += other.failovers;
        self.pushes += other.pushes;
        self.open_clients += other.open_clients;
        (self.located.iter_mut().zip(other.located)).for_each(|(mine, theirs)| *mine += theirs);
        self.open_lanes += other.open_lanes;
        self.in_flight += other.in_flight;
    }
}

/// The counts with this number; numbers are given from 0 on.
#[inline]
fn at<T: Default>(counts: &mut Vec<T>, number: usize) -> &mut T {
    if counts.len() <= number {
        counts.resize_with(number + 1, T::default);
    }
    &mut counts[number]
}
