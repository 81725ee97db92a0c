//! What a worker counts. Plain numbers of its own; asked for them, it hands out a copy.

use proxima_wire::message::Outcome;

use crate::members::MemberId;

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
    /// Closed because they held the most when there was no memory.
    pub greedy: u64,
}

/// Counts about one member.
#[derive(Clone, Debug, Default)]
pub struct MemberFigures {
    pub latency: Latency,
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

impl MemberFigures {
    #[inline]
    pub fn replied(&mut self, micros: u64, failed: bool) {
        self.latency.record(micros);
        if failed {
            // Seldom, and its line of memory is another one.
            self.errors += 1;
        }
    }

    pub fn failed(&mut self) {
        self.failures += 1;
    }
}

/// All counts of one worker, or their sum over all workers.
#[derive(Clone, Debug)]
pub struct Figures {
    pub clients: Clients,
    /// By command number.
    pub requests: Box<[u64; 256]>,
    /// By outcome.
    pub replies: [u64; 32],
    /// By listener.
    pub latency: Vec<Latency>,
    /// By member number.
    pub members: Vec<MemberFigures>,
    pub lanes_opened: u64,
    /// Requests that went on to another child after an error or a miss.
    pub failovers: u64,
    /// Messages of servers that nobody had asked for.
    pub pushes: u64,
    /// Gauges, filled in when a copy is handed out.
    pub open_clients: u64,
    pub open_lanes: u64,
    pub in_flight: u64,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            clients: Clients::default(),
            requests: Box::new([0; 256]),
            replies: [0; 32],
            latency: Vec::new(),
            members: Vec::new(),
            lanes_opened: 0,
            failovers: 0,
            pushes: 0,
            open_clients: 0,
            open_lanes: 0,
            in_flight: 0,
        }
    }
}

impl Figures {
    /// A reply to a client of this listener.
    #[inline]
    pub fn replied(&mut self, outcome: Outcome, micros: u64, listener: u16) {
        self.replies[outcome as usize] += 1;
        let listener = usize::from(listener);
        if self.latency.len() <= listener {
            self.latency.resize_with(listener + 1, Latency::default);
        }
        self.latency[listener].record(micros);
    }

    #[inline]
    pub fn member(&mut self, id: MemberId) -> &mut MemberFigures {
        let number = id.0 as usize;
        if self.members.len() <= number {
            self.members.resize_with(number + 1, MemberFigures::default);
        }
        &mut self.members[number]
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
        mine.greedy += theirs.greedy;
        self.requests
            .iter_mut()
            .zip(other.requests.iter())
            .for_each(|(mine, theirs)| *mine += theirs);
        self.replies
            .iter_mut()
            .zip(other.replies)
            .for_each(|(mine, theirs)| *mine += theirs);
        if self.latency.len() < other.latency.len() {
            self.latency.resize_with(other.latency.len(), Latency::default);
        }
        self.latency
            .iter_mut()
            .zip(&other.latency)
            .for_each(|(mine, theirs)| mine.add(theirs));
        for (number, theirs) in other.members.iter().enumerate() {
            let mine = self.member(MemberId(number as u32));
            mine.latency.add(&theirs.latency);
            mine.errors += theirs.errors;
            mine.failures += theirs.failures;
            mine.skipped += theirs.skipped;
            mine.lanes += theirs.lanes;
            mine.waiting += theirs.waiting;
        }
        self.lanes_opened += other.lanes_opened;
        self.failovers += other.failovers;
        self.pushes += other.pushes;
        self.open_clients += other.open_clients;
        self.open_lanes += other.open_lanes;
        self.in_flight += other.in_flight;
    }
}
