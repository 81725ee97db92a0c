//! All clients of a round, in one thread.

use std::{
    io::ErrorKind,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use mio::{Events, Poll, Token};

use super::{
    client::{Client, End},
    driver::Driver,
    step::Step,
};
use crate::timer::Timer;

/// Clients that log in at a time, and say their first statements.
const AT_ONCE: usize = 16;

/// No login and no first statements take as long.
const STUCK: Duration = Duration::from_secs(10);

/// The clients.
pub(super) struct Crowd {
    poll: Poll,
    events: Events,
    timer: Timer,
    clients: Vec<Client>,
    scratch: Vec<u8>,
    /// Requests and connections that failed.
    pub(super) errors: u64,
    /// The first failure in words.
    pub(super) first_error: Option<String>,
}

/// A request that is over.
pub(super) struct Finished {
    /// The number of the client.
    pub(super) client: usize,
    pub(super) is_good: bool,
}

impl Crowd {
    /// Clients of this address that have these drivers in turn, none of which is connected yet.
    pub(super) fn new(address: SocketAddr, count: usize, drivers: &'static [Driver]) -> Result<Self> {
        let poll = Poll::new()?;
        let timer = Timer::new(poll.registry(), Token(count))?;
        let drivers = drivers.iter().cycle().take(count);
        Ok(Self {
            poll,
            events: Events::with_capacity(1_024),
            timer,
            clients: drivers.map(|driver| Client::new(address, driver)).collect(),
            scratch: vec![0; 64 * 1024],
            errors: 0,
            first_error: None,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    pub(super) fn client(&self, number: usize) -> &Client {
        &self.clients[number]
    }

    /// Lets everybody log in.
    pub(super) fn log_in(&mut self) -> Result<()> {
        self.each(|crowd, number| crowd.enter(number, []))
    }

    /// Lets everybody who is logged in say the first statements of the driver.
    pub(super) fn say_preambles(&mut self) -> Result<()> {
        self.each(|crowd, number| {
            let client = &crowd.clients[number];
            if client.is_connected() {
                let preamble = client.driver().preamble;
                crowd.ask(number, preamble.iter().map(|text| Step::Say(text)));
            }
        })
    }

    /// Lets everybody leave.
    pub(super) fn leave(&mut self) {
        self.clients.iter_mut().for_each(Client::leave);
    }

    /// A client connects, logs in and asks.
    pub(super) fn enter(&mut self, number: usize, steps: impl IntoIterator<Item = Step>) {
        let entered = self.clients[number].enter(steps, self.poll.registry(), Token(number));
        if let Err(error) = entered {
            self.lose(number, &error);
        }
    }

    /// A client asks.
    pub(super) fn ask(&mut self, number: usize, steps: impl IntoIterator<Item = Step>) {
        if let Err(error) = self.clients[number].ask(steps) {
            self.lose(number, &error);
        }
    }

    /// A client says goodbye.
    pub(super) fn dismiss(&mut self, number: usize) {
        self.clients[number].leave();
    }

    /// Waits until something has come, and at most so long, and takes it. Appends the requests that are over.
    pub(super) fn turn(&mut self, timeout: Duration, finished: &mut Vec<Finished>) -> Result<()> {
        match self.poll.poll(&mut self.events, Some(timeout)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(()),
            other => other?,
        }
        // The token behind those of the clients is the timer's.
        let tokens = self.events.iter().map(|event| event.token().0);
        let ready: Vec<usize> = tokens.filter(|number| *number < self.clients.len()).collect();
        for client in ready {
            let is_good = match self.clients[client].read(&mut self.scratch) {
                Ok(None) => continue,
                Ok(Some(End::Good)) => true,
                Ok(Some(End::Refused(words))) => {
                    self.count_error(&words);
                    false
                }
                Err(error) => {
                    self.lose(client, &error);
                    false
                }
            };
            finished.push(Finished { client, is_good });
        }
        Ok(())
    }

    /// Ends the next wait after `delay`.
    pub(super) fn wake_after(&self, delay: Duration) -> Result<()> {
        self.timer.arm(delay)
    }

    pub(super) fn count_error(&mut self, words: &str) {
        self.errors += 1;
        self.first_error.get_or_insert_with(|| words.to_owned());
    }

    fn lose(&mut self, number: usize, error: &anyhow::Error) {
        self.clients[number].drop_connection();
        self.count_error(&format!("{error:#}"));
    }

    /// Lets everybody begin something and waits for its end, a few at a time.
    fn each(&mut self, begin: impl Fn(&mut Self, usize)) -> Result<()> {
        let (mut next, mut under_way, mut finished) = (0, Vec::new(), Vec::new());
        let mut deadline = Instant::now() + STUCK;
        loop {
            under_way.retain(|&number: &usize| self.clients[number].is_busy());
            while under_way.len() < AT_ONCE && next < self.clients.len() {
                begin(self, next);
                if self.clients[next].is_busy() {
                    under_way.push(next);
                }
                next += 1;
            }
            if under_way.is_empty() {
                return Ok(());
            }
            self.turn(Duration::from_millis(100), &mut finished)?;
            if !finished.is_empty() {
                deadline = Instant::now() + STUCK;
            }
            finished.clear();
            ensure!(
                Instant::now() < deadline,
                "a client has waited for {STUCK:?} with its login or its first statements"
            );
        }
    }
}
