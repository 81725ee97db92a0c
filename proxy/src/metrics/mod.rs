//! The counters of a worker. They are plain numbers that belong to the worker; on request it hands out a
//! copy.

mod failover;
mod named;
mod near;
mod outcomes;
mod sessions;
mod slow_readers;
mod tls;

use std::collections::BTreeMap;

use proxima_wire::message::Outcome;

pub use self::{
    failover::FailoverCounts,
    named::NamedCounts,
    near::{NearCounts, NearRuleCounts},
    outcomes::Outcomes,
    sessions::SessionCounts,
    slow_readers::SlowReaders,
    tls::TlsCounts,
};

use crate::members::{MemberId, PoolId};

/// Number of latency buckets. Their limits are powers of two in µs; the last bucket is open.
pub const BUCKETS: usize = 26;

/// A latency histogram. The sum stands beside the buckets of fast replies, so that one cache line is fetched
/// and not two.
#[derive(Clone, Debug, Default)]
#[repr(C)]
pub struct Latency {
    /// Sum of all latencies, in µs.
    pub sum: u64,
    /// Bucket `i` counts latencies below 2^i µs, and of at least half of that.
    pub buckets: [u64; BUCKETS],
}

impl Latency {
    #[inline]
    pub(crate) fn record(&mut self, micros: u64) {
        let bucket = (64 - micros.leading_zeros() as usize).min(BUCKETS - 1);
        self.buckets[bucket] += 1;
        self.sum += micros;
    }

    /// Adds what another has counted.
    pub fn add(&mut self, other: &Self) {
        self.buckets
            .iter_mut()
            .zip(other.buckets)
            .for_each(|(mine, theirs)| *mine += theirs);
        self.sum += other.sum;
    }

    /// The number of latencies in all buckets.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }
}

/// Counts about clients.
#[derive(Clone, Debug, Default)]
pub struct Clients {
    /// Clients accepted.
    pub accepted: u64,
    /// Clients closed, for any reason.
    pub closed: u64,
    /// Requests that were answered with an error without being routed.
    pub refused: u64,
    /// Requests that were streamed because of their size.
    pub uploads: u64,
    /// Clients closed because there were too many.
    pub over_limit: u64,
    /// Clients closed because they asked for nothing for too long.
    pub idle: u64,
    /// Clients closed because they were in a transaction and asked for nothing for too long.
    pub idle_in_transaction: u64,
    /// Clients closed because a server rejects the login by which they were admitted.
    pub rejected_login: u64,
    /// Clients closed because of their age.
    pub old: u64,
    /// Clients closed because they took nothing of what was due to them.
    pub slow: u64,
    /// Clients closed because the rest of a request did not come.
    pub unfinished: u64,
    /// Clients closed because they had closed their side, asked for much, and other clients waited for a
    /// descriptor.
    pub half_closed: u64,
    /// Clients closed because they held the most memory when there was none left.
    pub greedy: u64,
}

/// Counters of one member. Latencies are counted by pool: a histogram for each of a hundred members would
/// not be read. The fields that each reply changes stand first, in as few cache lines as possible.
#[derive(Clone, Debug, Default)]
#[repr(C, align(64))]
pub struct MemberMetrics {
    /// The time that all replies took, in sum, in µs.
    pub micros: u64,
    /// How requests to this member have ended. Those of clients that have left are not among them.
    pub outcomes: Outcomes,
    /// Lanes that broke or timed out.
    pub failures: u64,
    /// Writes that this copy missed because they went on without it.
    pub skipped: u64,
    /// Requests that had to wait for a dedicated lane.
    pub dedicated_waited: u64,
    /// Requests that got no dedicated lane in time.
    pub dedicated_refused: u64,
    /// Dedicated lanes that were opened.
    pub dedicated_opened: u64,
    /// Lanes that the server closed.
    pub closed: u64,
    /// Lanes that were closed because the server was late.
    pub timed_out: u64,
    /// Lanes that broke, or could not be made.
    pub broken: u64,
    /// Requests that the server was asked to end because they took too long.
    pub overdue: u64,
    /// Lanes that were closed because nothing was asked.
    pub idle: u64,
    /// Requests that were given to a lane, and lost with it.
    pub lost: u64,
    /// Bytes of the requests on lanes that have ended; filled up with those of open lanes when the metrics
    /// are handed out.
    pub sent_bytes: u64,
    /// The same of replies.
    pub received_bytes: u64,
    /// Gauge, filled in when the metrics are handed out: requests that wait for a lane's connection or login.
    pub held: u64,
    /// Gauge: their bytes.
    pub held_bytes: u64,
    /// Gauge: bytes of requests that the sockets have not taken.
    pub unsent_bytes: u64,
    /// Gauge, filled in when the metrics are handed out: dedicated lanes that a client has.
    pub dedicated: u64,
    /// Gauge, filled in when the metrics are handed out: dedicated lanes that no client has.
    pub dedicated_idle: u64,
    /// Gauge, filled in when the metrics are handed out: requests that wait for a dedicated lane.
    pub dedicated_queued: u64,
    /// Gauge, filled in when the metrics are handed out: open lanes to this member.
    pub lanes: u64,
    /// Gauge, filled in when the metrics are handed out: workers that have such a lane.
    pub workers: u64,
    /// Gauge, filled in when the metrics are handed out: workers that no longer have such a lane.
    pub former_workers: u64,
    /// Gauge, filled in when the metrics are handed out: requests on these lanes that are not answered.
    pub waiting: u64,
}

impl MemberMetrics {
    /// Counts a lane that broke or timed out.
    pub fn failed(&mut self) {
        self.failures += 1;
    }

    /// Adds the counts of the same server, or of another.
    pub fn add(&mut self, other: &Self) {
        self.micros += other.micros;
        self.outcomes.add(&other.outcomes);
        self.failures += other.failures;
        self.closed += other.closed;
        self.timed_out += other.timed_out;
        self.broken += other.broken;
        self.lost += other.lost;
        self.sent_bytes += other.sent_bytes;
        self.received_bytes += other.received_bytes;
        self.held += other.held;
        self.held_bytes += other.held_bytes;
        self.unsent_bytes += other.unsent_bytes;
        self.skipped += other.skipped;
        self.dedicated_waited += other.dedicated_waited;
        self.dedicated_refused += other.dedicated_refused;
        self.dedicated_opened += other.dedicated_opened;
        self.dedicated += other.dedicated;
        self.dedicated_idle += other.dedicated_idle;
        self.dedicated_queued += other.dedicated_queued;
        self.overdue += other.overdue;
        self.idle += other.idle;
        self.lanes += other.lanes;
        self.workers += other.workers;
        self.former_workers += other.former_workers;
        self.waiting += other.waiting;
    }
}

/// Counts about the clients of one listener.
#[derive(Clone, Debug, Default)]
pub struct ListenerMetrics {
    /// Clients that have left: they closed their side, or asked to be closed.
    pub eof: u64,
    /// Clients whose connection broke, was cut off, or was closed because of their bytes.
    pub errors: u64,
    /// Requests that were made of those with several keys.
    pub fragments: u64,
    /// Requests whose reply is an error that no server has answered in these words.
    pub failed: u64,
    /// Gauge, filled in when the metrics are handed out: open clients.
    pub clients: u64,
}

impl ListenerMetrics {
    fn add(&mut self, other: &Self) {
        self.eof += other.eof;
        self.errors += other.errors;
        self.fragments += other.fragments;
        self.failed += other.failed;
        self.clients += other.clients;
    }
}

/// Replies to clients, by outcome and by the number of the command among those of all protocols.
#[derive(Clone, Debug, Default)]
pub struct Replies(Vec<[u64; OUTCOMES]>);

/// The number of every outcome is below this.
const OUTCOMES: usize = 32;

impl Replies {
    /// How often this command ended with this outcome.
    pub fn of(&self, command: usize, outcome: Outcome) -> u64 {
        self.0.get(command).map_or(0, |row| row[outcome as usize])
    }

    /// How often any command ended with this outcome.
    pub fn with(&self, outcome: Outcome) -> u64 {
        self.0.iter().map(|row| row[outcome as usize]).sum()
    }

    /// The number of all replies.
    pub fn all(&self) -> u64 {
        self.0.iter().flatten().sum()
    }

    /// The number of error replies.
    pub fn errors(&self) -> u64 {
        let errors = outcomes::ERRORS.iter().chain(&outcomes::UNANSWERED);
        let errors = errors.chain(&[Outcome::ClientError]);
        errors.map(|&outcome| self.with(outcome)).sum()
    }

    /// How many keys this command has found, and how many it has not.
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

/// Bytes received and sent, counted at each receive and each flush. Bytes in the form of a transform are
/// counted as they are on the wire.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Bytes received.
    pub received: u64,
    /// Bytes sent.
    pub sent: u64,
}

impl Traffic {
    fn add(&mut self, other: Self) {
        self.received += other.received;
        self.sent += other.sent;
    }
}

/// Counts about the fleet.
#[derive(Clone, Debug, Default)]
pub struct Fleet {
    /// Changes sent to peers.
    pub changes_sent: u64,
    /// Writes to the sockets of peers in which changes left: many changes leave in one.
    pub flushes: u64,
    /// Changes of peers that were not applied because a later one had come before.
    pub superseded: u64,
    /// Changes of peers that were refused because they were of an earlier view.
    pub refused_view: u64,
    /// Changes that were sent again with a later stamp.
    pub again: u64,
    /// Times that this worker saw the lease end.
    pub leases_lost: u64,
    /// Replies that came from a copy after the lease had ended, and were answered as misses.
    pub unleased: u64,
    /// Misses of an own copy that had come back, which were looked up at a neighbour.
    pub fill_looks: u64,
    /// Values that such a copy was given.
    pub filled: u64,
    /// How long changes waited until all peers had them.
    pub write_wait: Latency,
    /// Gauge, filled in when the metrics are handed out: changes of peers that are not confirmed.
    pub doubts: u64,
    /// Gauge: the keys that each peer which is away has missed; `None`: all.
    pub missed: BTreeMap<String, Option<usize>>,
}

impl Fleet {
    fn add(&mut self, other: &Self) {
        self.changes_sent += other.changes_sent;
        self.flushes += other.flushes;
        self.superseded += other.superseded;
        self.refused_view += other.refused_view;
        self.again += other.again;
        self.leases_lost += other.leases_lost;
        self.unleased += other.unleased;
        self.fill_looks += other.fill_looks;
        self.filled += other.filled;
        self.write_wait.add(&other.write_wait);
        self.doubts += other.doubts;
        for (peer, keys) in &other.missed {
            let sum = self.missed.entry(peer.clone()).or_insert(Some(0));
            *sum = sum.zip(*keys).map(|(mine, theirs)| mine + theirs);
        }
    }
}

/// All counts of one worker, or their sum over all workers.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// Counts about clients.
    pub clients: Clients,
    /// Requests of clients, by the number of the command among those of all protocols.
    pub requests: Vec<u64>,
    /// Replies to clients.
    pub replies: Replies,
    /// Requests to servers, by the number of the command among those of all protocols.
    pub sent: Vec<u64>,
    /// Requests that mcrouter's DevNullRoute has taken.
    pub discarded: u64,
    /// Bytes from and to clients.
    pub client_traffic: Traffic,
    /// Bytes from and to servers.
    pub server_traffic: Traffic,
    /// Bytes from and to peers of the fleet.
    pub peer_traffic: Traffic,
    /// Counts about clients, by the number of the listener.
    pub listeners: Vec<ListenerMetrics>,
    /// Latency of replies to clients, by the number of the listener.
    pub latency: Vec<Latency>,
    /// Latency of members' replies, by the number of the pool.
    pub pools: Vec<Latency>,
    /// How long requests waited until the state of their pool let them go on, by the number of the pool.
    pub held: Vec<Latency>,
    /// Gauge, filled in when the metrics are handed out: requests that wait for that, by the number of the pool.
    pub parked: Vec<u64>,
    /// How long requests waited for a dedicated lane, by the number of the pool.
    pub queued: Vec<Latency>,
    /// Requests of the proxy's own to servers, by the number of the pool and that of the command among those
    /// of the pool's protocol.
    pub own: Vec<Vec<u64>>,
    /// Counts about members, by the number of the member.
    pub members: Vec<MemberMetrics>,
    /// How requests to members that are gone have ended.
    pub former: Outcomes,
    /// Lanes opened.
    pub lanes_opened: u64,
    /// How often there was no descriptor for a client, and for a connection to a server; the index is a
    /// `Shortage`.
    pub shortages: [u64; 2],
    /// Requests that went on to another child after an error or a miss.
    pub failovers: u64,
    /// Counters of failovers.
    pub failover: FailoverCounts,
    /// Requests that were divided among members, or sent to all, and whose replies became one.
    pub joins: u64,
    /// Error replies to clients by their first word, in protocols whose errors have one.
    pub errors: NamedCounts,
    /// How often clients have named their library, by its name.
    pub libraries: NamedCounts,
    /// Messages of servers that no request had asked for.
    pub pushes: u64,
    /// Counts about the fleet.
    pub fleet: Fleet,
    /// Counts about TLS.
    pub tls: TlsCounts,
    /// About the near cache, by rule.
    pub near: NearCounts,
    /// Gauge, filled in when the metrics are handed out: open clients.
    pub open_clients: u64,
    /// Gauges: clients that take what is sent to them slowly.
    pub slow_readers: SlowReaders,
    /// Gauge, filled in when the metrics are handed out: sessions by their state.
    pub sessions: SessionCounts,
    /// Gauge: clients known to be on one NUMA node, on one socket, and anywhere on this host.
    pub located: [u64; 3],
    /// Gauge: open lanes to all members.
    pub open_lanes: u64,
    /// Gauge: requests on lanes that are not answered.
    pub in_flight: u64,
}

impl Metrics {
    /// Counts a request of a client.
    #[inline]
    pub fn asked(&mut self, command: usize) {
        *at(&mut self.requests, command) += 1;
    }

    /// Counts a reply to a client of this listener, which took `micros` µs.
    #[inline]
    pub fn replied(&mut self, command: usize, outcome: Outcome, micros: u64, listener: u16) {
        at(&mut self.replies.0, command)[outcome as usize] += 1;
        at(&mut self.latency, usize::from(listener)).record(micros);
    }

    /// Counts a reply of this member, which took `micros` µs.
    #[inline]
    pub fn served(&mut self, pool: PoolId, member: MemberId, micros: u64, outcome: Outcome) {
        at(&mut self.pools, pool.0 as usize).record(micros);
        let member = self.member(member);
        member.micros += micros;
        member.outcomes.count(outcome, 1);
    }

    /// Counts a request that waited this long, in µs, for the state of this pool.
    pub fn held(&mut self, pool: PoolId, micros: u64) {
        at(&mut self.held, pool.0 as usize).record(micros);
    }

    /// Notes that so many requests wait for the state of this pool.
    pub fn parks(&mut self, pool: PoolId, requests: u64) {
        *at(&mut self.parked, pool.0 as usize) += requests;
    }

    /// Counts a request that waited this long, in µs, for a dedicated lane to a member of this pool.
    pub fn queued(&mut self, pool: PoolId, micros: u64) {
        at(&mut self.queued, pool.0 as usize).record(micros);
    }

    /// Counts a request of the proxy's own to a server of this pool.
    #[inline]
    pub fn sent_own(&mut self, pool: PoolId, command: u16) {
        self.sent(command);
        *at(at(&mut self.own, pool.0 as usize), usize::from(command)) += 1;
    }

    /// Counts a request to a server.
    #[inline]
    pub fn sent(&mut self, command: u16) {
        *at(&mut self.sent, usize::from(command)) += 1;
    }

    /// The counts about clients of this listener.
    pub fn listener(&mut self, number: u16) -> &mut ListenerMetrics {
        at(&mut self.listeners, usize::from(number))
    }

    /// The counts of this member.
    #[inline]
    pub fn member(&mut self, id: MemberId) -> &mut MemberMetrics {
        at(&mut self.members, id.0 as usize)
    }

    /// Clears the counts of this member, which is gone. Its number may be given to another, whose counts
    /// begin at 0.
    pub fn forget(&mut self, id: MemberId) {
        let gone = std::mem::take(self.member(id));
        self.former.add(&gone.outcomes);
    }

    /// Adds the counts of another worker.
    pub fn add(&mut self, other: &Self) {
        let (mine, theirs) = (&mut self.clients, &other.clients);
        mine.accepted += theirs.accepted;
        mine.closed += theirs.closed;
        mine.refused += theirs.refused;
        mine.uploads += theirs.uploads;
        mine.over_limit += theirs.over_limit;
        mine.idle += theirs.idle;
        mine.idle_in_transaction += theirs.idle_in_transaction;
        mine.rejected_login += theirs.rejected_login;
        mine.old += theirs.old;
        mine.slow += theirs.slow;
        mine.unfinished += theirs.unfinished;
        mine.half_closed += theirs.half_closed;
        mine.greedy += theirs.greedy;
        for (number, theirs) in other.requests.iter().enumerate() {
            *at(&mut self.requests, number) += theirs;
        }
        self.replies.add(&other.replies);
        for (number, theirs) in other.sent.iter().enumerate() {
            *at(&mut self.sent, number) += theirs;
        }
        self.discarded += other.discarded;
        self.client_traffic.add(other.client_traffic);
        self.server_traffic.add(other.server_traffic);
        self.peer_traffic.add(other.peer_traffic);
        for (number, theirs) in other.listeners.iter().enumerate() {
            at(&mut self.listeners, number).add(theirs);
        }
        for (number, theirs) in other.latency.iter().enumerate() {
            at(&mut self.latency, number).add(theirs);
        }
        for (number, theirs) in other.pools.iter().enumerate() {
            at(&mut self.pools, number).add(theirs);
        }
        for (number, theirs) in other.held.iter().enumerate() {
            at(&mut self.held, number).add(theirs);
        }
        for (number, theirs) in other.parked.iter().enumerate() {
            *at(&mut self.parked, number) += theirs;
        }
        for (number, theirs) in other.queued.iter().enumerate() {
            at(&mut self.queued, number).add(theirs);
        }
        for (pool, theirs) in other.own.iter().enumerate() {
            for (command, theirs) in theirs.iter().enumerate() {
                *at(at(&mut self.own, pool), command) += theirs;
            }
        }
        for (number, theirs) in other.members.iter().enumerate() {
            at(&mut self.members, number).add(theirs);
        }
        self.former.add(&other.former);
        self.lanes_opened += other.lanes_opened;
        (self.shortages.iter_mut().zip(other.shortages)).for_each(|(mine, theirs)| *mine += theirs);
        self.failovers += other.failovers;
        self.failover.add(&other.failover);
        self.joins += other.joins;
        self.errors.add(&other.errors);
        self.libraries.add(&other.libraries);
        self.pushes += other.pushes;
        self.fleet.add(&other.fleet);
        self.tls.add(&other.tls);
        self.near.add(&other.near);
        self.open_clients += other.open_clients;
        self.slow_readers.add(&other.slow_readers);
        self.sessions.add(&other.sessions);
        (self.located.iter_mut().zip(other.located)).for_each(|(mine, theirs)| *mine += theirs);
        self.open_lanes += other.open_lanes;
        self.in_flight += other.in_flight;
    }
}

/// The counts with this number. Numbers are given from 0 on.
#[inline]
fn at<T: Default>(counts: &mut Vec<T>, number: usize) -> &mut T {
    if counts.len() <= number {
        counts.resize_with(number + 1, T::default);
    }
    &mut counts[number]
}
