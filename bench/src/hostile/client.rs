//! A well-behaved client: it asks for its own keys, reads what it is due, and checks it.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use parking_lot::Mutex;
use rand::{RngExt, SeedableRng, rngs::SmallRng};

use super::{
    held::{Cell, Counter, ReadResult},
    options::Options,
    redis_reply,
    reply::{Kind, Reply, excerpt, parse},
    score::Score,
};

use crate::{protocol::Protocol, redis};

/// Sizes of the values of a client's keys: most are small, two are more than a buffer, one is more than
/// proxies hold whole.
const SIZES: [usize; 9] = [60, 60, 60, 60, 400, 400, 4_000, 16_000, 100_000];

/// The key whose value is large: asked for now and then.
const LARGE: usize = SIZES.len() - 1;

/// Requests of a batch at most.
const BATCH: usize = 8;

/// Pause after a failure, so that a server that refuses at once is not asked without end.
const AFTER_FAILURE: Duration = Duration::from_millis(20);

/// A reply that has not come by then, or by four time-outs, is not waited for any longer.
const GIVE_UP: Duration = Duration::from_secs(5);

/// One request of a batch.
enum Request {
    Set(usize),
    Get(Vec<usize>),
    Delete(usize),
    SetCounter(u64),
    Count,
    ReadCounter,
}

impl Request {
    fn kind(&self) -> Kind {
        match self {
            Self::Set(_) | Self::SetCounter(_) => Kind::Set,
            Self::Get(_) | Self::ReadCounter => Kind::Get,
            Self::Delete(_) => Kind::Delete,
            Self::Count => Kind::Count,
        }
    }
}

pub(super) struct Client<'a> {
    options: &'a Options,
    score: &'a Mutex<Score>,
    cells: Vec<Cell>,
    counter: Counter,
    random: SmallRng,
    stream: Option<TcpStream>,
    replies: Vec<u8>,
    give_up: Duration,
}

impl<'a> Client<'a> {
    /// A connected client whose keys begin with `keys`.
    pub(super) fn new(
        options: &'a Options,
        keys: &str,
        number: u32,
        score: &'a Mutex<Score>,
    ) -> Result<Self> {
        let cell = |(place, size): (usize, &usize)| Cell::new(format!("{keys}:{number}:{place}"), *size);
        Ok(Self {
            options,
            score,
            cells: SIZES.iter().enumerate().map(cell).collect(),
            counter: Counter::new(format!("{keys}:{number}:n")),
            random: SmallRng::seed_from_u64(u64::from(number)),
            stream: Some(
                connect(options.address, GIVE_UP)
                    .with_context(|| format!("cannot connect to {}", options.address))?,
            ),
            replies: Vec::new(),
            give_up: GIVE_UP.max(4 * options.timeout),
        })
    }

    /// Sends requests until the round is over, and then one more for every key.
    pub(super) fn run(&mut self, is_over: impl Fn() -> bool) {
        while !is_over() {
            let batch = self.choose();
            self.ask(&batch);
            thread::sleep(self.options.pause);
        }
        let all: Vec<_> = (0..self.cells.len())
            .map(|place| Request::Get(vec![place]))
            .collect();
        self.ask(&all);
    }

    /// The next batch. A key is written at most once in it.
    fn choose(&mut self) -> Vec<Request> {
        let random = &mut self.random;
        let mut written = [false; SIZES.len()];
        let mut counted = false;
        let mut batch = Vec::new();
        for _ in 0..random.random_range(1..=BATCH) {
            // The large one is a tenth as frequent as each of the others.
            let place = match random.random_range(0..LARGE * 10 + 1) {
                0 => LARGE,
                other => other % LARGE,
            };
            batch.push(match random.random_range(0..10) {
                0..3 if !written[place] => {
                    written[place] = true;
                    Request::Set(place)
                }
                3 if !written[place] => {
                    written[place] = true;
                    Request::Delete(place)
                }
                4 if !counted => {
                    counted = true;
                    match self.counter.at() {
                        Some(_) => Request::Count,
                        None => Request::SetCounter(random.random_range(0..1_000_000)),
                    }
                }
                // The number to which it has just counted.
                4 => Request::ReadCounter,
                5..7 => {
                    let first = random.random_range(0..LARGE - 4);
                    Request::Get((first..first + 4).collect())
                }
                _ => Request::Get(vec![place]),
            });
        }
        batch
    }

    /// Sends a batch, and checks its replies one by one.
    fn ask(&mut self, batch: &[Request]) {
        let mut bytes = Vec::new();
        for request in batch {
            self.append(request, &mut bytes);
        }
        let begun = Instant::now();
        let mut answered = 0;
        let sent = self.send(&bytes);
        let failure = sent.and_then(|()| {
            for request in batch {
                self.receive(request, begun)?;
                answered += 1;
            }
            // A reply that was not asked for.
            match self.replies.is_empty() {
                true => Ok(()),
                false => Err(Failure::Wrong(format!(
                    "after the last reply: {}",
                    excerpt(&self.replies)
                ))),
            }
        });
        if let Err(failure) = failure {
            self.fail(failure, begun, &batch[answered..]);
        }
        for cell in &mut self.cells {
            cell.settle();
        }
    }

    /// The rest of a batch has no reply that can be told from another's: its connection is closed.
    fn fail(&mut self, failure: Failure, begun: Instant, unanswered: &[Request]) {
        self.stream = None;
        self.replies.clear();
        let request = unanswered
            .first()
            .map_or_else(|| "nothing".to_owned(), |first| self.describe(first));
        {
            let mut score = self.score.lock();
            match failure {
                Failure::Late => score.timed(begun, &request, false, self.options.timeout),
                Failure::Lost(words) => score.lost(&words),
                Failure::Wrong(words) => score.wrong(&format!("to {request}: {words}")),
            }
        }
        for request in unanswered {
            match request {
                Request::Set(place) | Request::Delete(place) => self.cells[*place].failed(),
                Request::SetCounter(_) | Request::Count => self.counter.failed(),
                Request::Get(_) | Request::ReadCounter => {}
            }
        }
        thread::sleep(AFTER_FAILURE);
    }

    fn append(&mut self, request: &Request, out: &mut Vec<u8>) {
        match self.options.protocol {
            Protocol::Redis => self.append_command(request, out),
            _ => self.append_line(request, out),
        }
    }

    fn append_command(&mut self, request: &Request, out: &mut Vec<u8>) {
        let (verb, value) = match request {
            Request::Set(place) => ("SET", Some(self.cells[*place].next())),
            Request::SetCounter(number) => ("SET", Some(number.to_string().into_bytes())),
            Request::Get(places) if places.len() > 1 => ("MGET", None),
            Request::Get(_) | Request::ReadCounter => ("GET", None),
            Request::Delete(_) => ("DEL", None),
            Request::Count => ("INCR", None),
        };
        let keys = self.names(request).into_iter().map(String::into_bytes);
        let words: Vec<_> = [verb.into()].into_iter().chain(keys).chain(value).collect();
        out.extend(redis::request::command(&words));
    }

    /// The keys of a request.
    fn names(&self, request: &Request) -> Vec<String> {
        let name = |place: &usize| self.cells[*place].name().to_owned();
        match request {
            Request::Set(place) | Request::Delete(place) => vec![name(place)],
            Request::Get(places) => places.iter().map(name).collect(),
            Request::SetCounter(_) | Request::Count | Request::ReadCounter => {
                vec![self.counter.name().to_owned()]
            }
        }
    }

    fn append_line(&mut self, request: &Request, out: &mut Vec<u8>) {
        match request {
            Request::Set(place) => {
                let value = self.cells[*place].next();
                let head = format!("set {} 0 0 {}\r\n", self.cells[*place].name(), value.len());
                out.extend_from_slice(head.as_bytes());
                out.extend_from_slice(&value);
            }
            Request::Get(places) => {
                out.extend_from_slice(b"get");
                for place in places {
                    out.push(b' ');
                    out.extend_from_slice(self.cells[*place].name().as_bytes());
                }
            }
            Request::Delete(place) => {
                out.extend_from_slice(format!("delete {}", self.cells[*place].name()).as_bytes());
            }
            Request::SetCounter(number) => {
                let digits = number.to_string();
                let text = format!("set {} 0 0 {}\r\n{digits}", self.counter.name(), digits.len());
                out.extend_from_slice(text.as_bytes());
            }
            Request::Count => out.extend_from_slice(format!("incr {} 1", self.counter.name()).as_bytes()),
            Request::ReadCounter => out.extend_from_slice(format!("get {}", self.counter.name()).as_bytes()),
        }
        out.extend_from_slice(b"\r\n");
    }

    fn describe(&self, request: &Request) -> String {
        let verb = match request {
            Request::Set(_) | Request::SetCounter(_) => "set",
            Request::Get(_) | Request::ReadCounter => "get",
            Request::Delete(_) => "delete",
            Request::Count => "incr",
        };
        format!("{verb} {}", self.names(request).join(" "))
    }

    fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            None => self
                .stream
                .insert(connect(self.options.address, self.options.timeout)?),
        };
        stream.set_write_timeout(Some(self.give_up))?;
        stream.write_all(bytes)?;
        Ok(())
    }

    /// Waits for the reply to `request`, and checks it.
    fn receive(&mut self, request: &Request, begun: Instant) -> Result<(), Failure> {
        let mut chunk = [0; 32 * 1024];
        let keys = self.names(request);
        loop {
            let parsed = match self.options.protocol {
                Protocol::Redis => redis_reply::parse(request.kind(), &keys, &self.replies),
                _ => parse(request.kind(), &self.replies),
            };
            if let Some((length, reply)) = parsed {
                let checked = check(&mut self.cells, &mut self.counter, request, reply);
                let words = excerpt(&self.replies[..length.max(self.replies.len().min(200))]);
                self.replies.drain(..length);
                return self.judged(checked, request, begun, &words);
            }
            let left = self.give_up.saturating_sub(begun.elapsed());
            let stream = self.stream.as_mut().ok_or(Failure::Late)?;
            if left.is_zero() {
                return Err(Failure::Late);
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut chunk) {
                Ok(0) => return Err(Failure::Lost("closed by the other side".to_owned())),
                Ok(length) => self.replies.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn judged(
        &self,
        checked: ReplyCheck,
        request: &Request,
        begun: Instant,
        bytes: &str,
    ) -> Result<(), Failure> {
        let mut score = self.score.lock();
        score.replies += 1;
        score.timed(begun, &self.describe(request), true, self.options.timeout);
        match checked {
            ReplyCheck::Read(ReadResult::AsWritten) => {
                score.hits += u64::from(matches!(request, Request::Get(_)))
            }
            ReplyCheck::Read(ReadResult::Gone) => score.missed(&self.describe(request)),
            ReplyCheck::Refused(words) => score.refused(&words),
            ReplyCheck::Read(ReadResult::Wrong(words)) => {
                return Err(Failure::Wrong(format!("{words}; the bytes: {bytes}")));
            }
        }
        Ok(())
    }
}

enum Failure {
    /// There was no reply for so long that it was given up.
    Late,
    /// The connection could not be made, or is broken.
    Lost(String),
    /// The bytes are not the reply.
    Wrong(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The errors of the kernel when the time for a read or write is over.
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Self::Late,
            _ => Self::Lost(error.to_string()),
        }
    }
}

enum ReplyCheck {
    Read(ReadResult),
    Refused(String),
}

/// Compares a reply with what the client knows, and updates that.
fn check(cells: &mut [Cell], counter: &mut Counter, request: &Request, reply: Reply<'_>) -> ReplyCheck {
    let seen = match (request, reply) {
        (_, Reply::Wrong(words)) => ReadResult::Wrong(words),
        (_, Reply::Refused(words)) => {
            match request {
                Request::Set(place) | Request::Delete(place) => cells[*place].failed(),
                Request::SetCounter(_) | Request::Count => counter.failed(),
                Request::Get(_) | Request::ReadCounter => {}
            }
            return ReplyCheck::Refused(words);
        }
        (Request::Set(place), Reply::Stored) => {
            cells[*place].stored();
            ReadResult::AsWritten
        }
        (Request::SetCounter(number), Reply::Stored) => {
            counter.now_at(*number);
            ReadResult::AsWritten
        }
        (Request::Delete(place), reply @ (Reply::Deleted | Reply::NotFound)) => {
            let cell = &mut cells[*place];
            let was_there = reply == Reply::Deleted;
            let seen = if was_there && cell.should_not_be_there() {
                ReadResult::Wrong(format!("{} was deleted twice", cell.name()))
            } else if !was_there && cell.should_be_there() {
                ReadResult::Gone
            } else {
                ReadResult::AsWritten
            };
            cell.deleted();
            seen
        }
        (Request::Count, Reply::NotFound) => {
            counter.failed();
            ReadResult::Gone
        }
        (Request::Count, Reply::Number(number)) => match counter.at() {
            Some(before) if number != before + 1 => {
                counter.failed();
                ReadResult::Wrong(format!("{number}, after {before}"))
            }
            _ => {
                counter.now_at(number);
                ReadResult::AsWritten
            }
        },
        (Request::ReadCounter, Reply::Values(values)) => counter.judge(&values),
        (Request::Get(places), Reply::Values(values)) => {
            let mut rest = values;
            let mut all = ReadResult::AsWritten;
            for place in places {
                let cell = &cells[*place];
                let found = rest.iter().position(|(key, _)| *key == cell.name().as_bytes());
                let value = found.map(|at| rest.remove(at).1);
                all = all.and(cell.judge(value));
            }
            match rest.first() {
                Some((key, value)) => ReadResult::Wrong(format!(
                    "a value that was not asked for: {} {}",
                    excerpt(key),
                    excerpt(value)
                )),
                None => all,
            }
        }
        // `parse` returns no other replies for these kinds.
        (_, reply) => ReadResult::Wrong(format!("{reply:?}")),
    };
    ReplyCheck::Read(seen)
}

fn connect(address: SocketAddr, timeout: Duration) -> io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, timeout)?;
    // Where no process listens on an ephemeral port of this machine, a connection may meet itself.
    if stream.local_addr()? == address {
        return Err(ErrorKind::ConnectionRefused.into());
    }
    stream.set_nodelay(true)?;
    Ok(stream)
}
