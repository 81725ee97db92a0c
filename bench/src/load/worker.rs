//! One thread of the load: its connections and its event loop.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    sync::mpsc::Sender,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use mio::{Events, Poll, Token};

use super::{
    connection::Connection, connection_state::ConnectionState, options::Options, pace::Pace, tally::Tally,
};
use crate::{
    form::Form,
    net::{connect_many, wait_for_words},
    timer::Timer,
    workload::{Keys, Operation, Operations},
};

/// Time to wait for replies after the last request, and for words of a login.
const GRACE: Duration = Duration::from_secs(2);

/// Time until the next try after a connection failed.
const RETRY: Duration = Duration::from_millis(10);

/// The counters of one thread in one second of the run.
pub(super) struct Interval {
    /// The number of the second, from 0.
    pub(super) second: u64,
    /// The counters.
    pub(super) tally: Tally,
}

/// A thread's share of the run.
pub(super) struct Worker<'a> {
    options: &'a Options,
    form: Form,
    keys: &'a Keys,
    operations: Operations,
    /// The operations of one request.
    asked: Vec<Operation>,
    poll: Poll,
    timer: Timer,
    connections: Vec<Connection>,
    states: Vec<ConnectionState>,
    /// Connections to be opened again, with the times.
    retries: Vec<(Instant, usize)>,
    tally: Tally,
    scratch: Vec<u8>,
}

impl<'a> Worker<'a> {
    /// A worker with a connection to each of `addresses`, made already unless each request makes its own.
    pub(super) fn connect(
        options: &'a Options,
        keys: &'a Keys,
        operations: Operations,
        addresses: &[SocketAddr],
    ) -> Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), Token(addresses.len()))?;
        let request = (options.keys_a_request, false);
        let form = Form::new(options.protocol, request, options.value_size, keys);
        let mut connections: Vec<Connection> = addresses
            .iter()
            .map(|&address| Connection::new(address, options.protocol, form.operations()))
            .collect();
        if !options.reconnect {
            let sockets = connect_many(addresses)?;
            for socket in &sockets {
                socket.set_read_timeout(Some(GRACE))?;
            }
            let streams = options.protocol.enter(sockets, None, &mut wait_for_words)?;
            for (number, (connection, (stream, statements))) in
                connections.iter_mut().zip(streams).enumerate()
            {
                let stream = (stream.into_socket(), statements);
                connection.adopt(stream, poll.registry(), Token(number))?;
            }
        }
        Ok(Self {
            options,
            form,
            keys,
            operations,
            asked: Vec::new(),
            poll,
            timer,
            states: vec![ConnectionState::default(); connections.len()],
            connections,
            retries: Vec::new(),
            tally: Tally::new(),
            scratch: vec![0; 256 * 1024],
        })
    }

    /// Sends and reads from `start` on until the duration is over and the last reply has come, reporting each
    /// second. `pace` is the thread's share of an open loop.
    pub(super) fn run(
        mut self,
        start: Instant,
        pace: Option<Pace>,
        reports: &Sender<Interval>,
    ) -> Result<()> {
        let end = start + self.options.duration;
        let mut events = Events::with_capacity(1_024);
        let mut second = 0;
        let mut issued = 0;
        if pace.is_none() {
            for number in 0..self.connections.len() {
                self.advance(number, None, true);
            }
        }
        loop {
            let now = Instant::now();
            if now >= start + Duration::from_secs(second + 1) {
                let tally = std::mem::replace(&mut self.tally, Tally::new());
                // The receiver is gone only when the main thread has failed; then this run is over too.
                reports
                    .send(Interval { second, tally })
                    .ok()
                    .context("the run was given up")?;
                second += 1;
            }
            let over = now >= end;
            // Before the run may end: requests whose time came while this thread did not run were due all the
            // same.
            if let Some(pace) = &pace {
                let due = pace.due(now.min(end));
                while issued < due {
                    let number = pace.connection(issued);
                    self.states[number].due += 1;
                    issued += 1;
                    self.advance(number, Some(pace), true);
                }
                if !over {
                    self.timer
                        .arm(pace.time(issued).saturating_duration_since(Instant::now()))?;
                }
            }
            if over && (self.idle() || now >= end + GRACE) {
                break;
            }
            self.retry(now, pace.as_ref(), !over);
            let timeout = if self.retries.is_empty() {
                Duration::from_millis(50)
            } else {
                Duration::from_millis(1)
            };
            match self.poll.poll(&mut events, Some(timeout)) {
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                other => other?,
            }
            let over = Instant::now() >= end;
            for event in &events {
                let number = event.token().0;
                if number < self.connections.len() {
                    self.handle(number);
                    self.advance(number, pace.as_ref(), !over);
                }
            }
        }
        self.lose_the_rest(pace.as_ref());
        reports
            .send(Interval {
                second,
                tally: self.tally,
            })
            .ok()
            .context("the run was given up")
    }

    /// Whether no reply is awaited. Requests that were due and never sent do not count.
    fn idle(&self) -> bool {
        self.connections
            .iter()
            .all(|connection| connection.under_way() == 0)
            && self.states.iter().all(|state| state.sent == state.due)
    }

    /// Counts requests that were never answered, and those that were due and never sent.
    fn lose_the_rest(&mut self, pace: Option<&Pace>) {
        const WHY: &str = "no reply until the end of the run";
        let now = Instant::now();
        for (number, connection) in self.connections.iter_mut().enumerate() {
            connection.close(&mut self.tally, WHY);
            let state = self.states[number];
            for (request, pace) in (state.sent..state.due).filter_map(|request| Some((request, pace?))) {
                let age = now.saturating_duration_since(pace.time_on(number, request));
                self.tally.lose(false, age, WHY);
            }
        }
    }

    /// Reads and writes what can be read and written.
    fn handle(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        let read = connection.read(&mut self.scratch, self.keys, &self.form, &mut self.tally);
        if let Err(error) = read.and_then(|()| connection.flush(&mut self.tally)) {
            self.park(number, &error);
        } else if self.options.reconnect && connection.is_open() && connection.under_way() == 0 {
            connection.close(&mut self.tally, "");
        }
    }

    /// Sends what a connection has to send now: in the closed loop as many requests as replies have come, in
    /// the open loop those that are due. After the end (`more` is false) only the open loop's late ones.
    fn advance(&mut self, number: usize, pace: Option<&Pace>, more: bool) {
        let (connection, state) = (&mut self.connections[number], &mut self.states[number]);
        let room = self.options.pipeline - connection.under_way().min(self.options.pipeline);
        let wanted = match pace {
            Some(_) => room.min((state.due - state.sent) as usize),
            None if more => room,
            None => 0,
        };
        if wanted == 0 || state.parked {
            return;
        }
        let now = Instant::now();
        let opened = if connection.is_open() {
            Ok(())
        } else {
            connection.open(self.poll.registry(), Token(number))
        };
        for _ in 0..wanted {
            self.asked.clear();
            self.asked
                .extend(self.operations.by_ref().take(self.form.operations()));
            let since = match pace {
                Some(pace) => pace.time_on(number, state.sent),
                None => now,
            };
            state.sent += u64::from(pace.is_some());
            connection.ask(&self.asked, since, self.keys, &self.form);
        }
        if opened.is_err() {
            self.tally.failed_connects += 1;
        }
        if let Err(error) = opened.and_then(|()| connection.flush(&mut self.tally)) {
            self.park(number, &error);
        }
    }

    /// Gives up a connection for a moment. Its requests without a reply are lost.
    fn park(&mut self, number: usize, why: &anyhow::Error) {
        self.connections[number].close(&mut self.tally, &format!("{why:#}"));
        if !std::mem::replace(&mut self.states[number].parked, true) {
            self.retries.push((Instant::now() + RETRY, number));
        }
    }

    /// Opens connections again that have waited long enough after a failure.
    fn retry(&mut self, now: Instant, pace: Option<&Pace>, more: bool) {
        let (ready, later): (Vec<_>, Vec<_>) = self.retries.drain(..).partition(|(time, _)| *time <= now);
        self.retries = later;
        for (_, number) in ready {
            self.states[number].parked = false;
            self.advance(number, pace, more);
        }
    }
}
