//! One connection of the load: what was sent on it and not answered yet.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
    time::Instant,
};

use anyhow::{Result, bail};
use mio::{Interest, Registry, Token, net::TcpStream};

use super::tally::Tally;
use crate::{
    form::Form,
    protocol::{Login, Protocol, Statements},
    verdict::Verdict,
    workload::{Keys, Operation},
};

/// A connection, or the place of one.
pub(super) struct Connection {
    address: SocketAddr,
    protocol: Protocol,
    /// Operations of a request.
    operations: usize,
    stream: Option<TcpStream>,
    connected: bool,
    /// The login that is under way, before which no request leaves.
    login: Option<Login>,
    /// The statements that were prepared with it.
    statements: Statements,
    /// The login's bytes that are to be sent.
    words: Vec<u8>,
    /// The operations of requests without a reply, oldest first, each with the time from which the latency
    /// of its request counts.
    waiting: VecDeque<(Operation, Instant)>,
    requests: Vec<u8>,
    written: usize,
    replies: Vec<u8>,
}

impl Connection {
    /// A place for a connection to `address`, on which each request has so many operations.
    pub(super) fn new(address: SocketAddr, protocol: Protocol, operations: usize) -> Self {
        Self {
            address,
            protocol,
            operations,
            stream: None,
            connected: false,
            login: None,
            statements: Statements::default(),
            words: Vec::new(),
            waiting: VecDeque::new(),
            requests: Vec::new(),
            written: 0,
            replies: Vec::new(),
        }
    }

    /// Begins to connect.
    pub(super) fn open(&mut self, registry: &Registry, token: Token) -> Result<()> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_nodelay(true)?;
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        self.stream = Some(stream);
        self.connected = false;
        self.login = self.protocol.login();
        Ok(())
    }

    /// Takes over an established connection, which is logged in where a login comes first.
    pub(super) fn adopt(
        &mut self,
        (stream, statements): (std::net::TcpStream, Statements),
        registry: &Registry,
        token: Token,
    ) -> Result<()> {
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)?;
        self.stream = Some(stream);
        self.statements = statements;
        self.connected = true;
        Ok(())
    }

    /// Closes the connection. Requests without a reply are lost.
    pub(super) fn close(&mut self, tally: &mut Tally, why: &str) {
        let now = Instant::now();
        let operations = self.operations;
        for (operation, since) in self.waiting.drain(..).step_by(operations) {
            tally.lose(operation.set, now.saturating_duration_since(since), why);
        }
        if let Some(mut stream) = self
            .stream
            .take()
            .filter(|_| self.connected && self.login.is_none())
        {
            // Nobody waits for it: a connection that is lost is closed anyway.
            let _ = stream.write(self.protocol.goodbye());
        }
        self.login = None;
        self.words.clear();
        self.requests.clear();
        self.written = 0;
        self.replies.clear();
    }

    /// Whether there is a connection, established or not yet.
    pub(super) fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// Requests without a reply.
    pub(super) fn under_way(&self) -> usize {
        self.waiting.len() / self.operations
    }

    /// Appends a request, which leaves with the next [`Connection::flush`], or behind the login.
    pub(super) fn ask(&mut self, operations: &[Operation], since: Instant, keys: &Keys, form: &Form) {
        if self.login.is_none() {
            form.append(operations, 0, keys, self.statements, &mut self.requests);
        }
        self.waiting
            .extend(operations.iter().map(|&operation| (operation, since)));
    }

    /// Writes what the kernel takes.
    ///
    /// # Errors
    /// When the connection could not be made, or is broken.
    pub(super) fn flush(&mut self, tally: &mut Tally) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            return Ok(());
        };
        if !self.connected {
            if let Some(error) = stream.take_error()? {
                tally.failed_connects += 1;
                bail!(error);
            }
            match stream.peer_addr() {
                Err(error) if error.kind() == ErrorKind::NotConnected => return Ok(()),
                other => other?,
            };
            self.connected = true;
            tally.connects += 1;
        }
        if self.login.is_some() {
            let length = match stream.write(&self.words) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => 0,
                other => other?,
            };
            self.words.drain(..length);
            return Ok(());
        }
        while self.written < self.requests.len() {
            match stream.write(&self.requests[self.written..]) {
                Ok(length) => self.written += length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
        self.requests.clear();
        self.written = 0;
        Ok(())
    }

    /// Reads and judges all replies that have come.
    ///
    /// # Errors
    /// When the connection is closed or broken, and after a wrong reply: where the next one begins is not
    /// known then.
    pub(super) fn read(
        &mut self,
        scratch: &mut [u8],
        keys: &Keys,
        form: &Form,
        tally: &mut Tally,
    ) -> Result<()> {
        loop {
            let Some(stream) = &mut self.stream else {
                return Ok(());
            };
            match stream.read(scratch) {
                Ok(0) => bail!("the connection was closed by the other side"),
                Ok(length) if self.login.is_some() => self.log_in(&scratch[..length], keys, form)?,
                Ok(length) if self.replies.is_empty() => {
                    let used = self.judge_all(&scratch[..length], keys, form, tally)?;
                    self.replies.extend_from_slice(&scratch[used..length]);
                }
                Ok(length) => {
                    let mut replies = std::mem::take(&mut self.replies);
                    replies.extend_from_slice(&scratch[..length]);
                    let used = self.judge_all(&replies, keys, form, tally)?;
                    replies.drain(..used);
                    self.replies = replies;
                }
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::NotConnected) => {
                    return Ok(());
                }
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Goes on with the login by what the other side has said. When it is over, the requests that wait for it
    /// leave.
    fn log_in(&mut self, bytes: &[u8], keys: &Keys, form: &Form) -> Result<()> {
        self.replies.extend_from_slice(bytes);
        if let Some(login) = &mut self.login {
            let used = login.take(&self.replies, &mut self.words)?;
            self.replies.drain(..used);
        }
        if let Some(login) = self.login.take_if(|login| login.is_over()) {
            self.statements = login.statements();
            let waiting: Vec<_> = self.waiting.iter().map(|(operation, _)| *operation).collect();
            for request in waiting.chunks(self.operations) {
                form.append(request, 0, keys, self.statements, &mut self.requests);
            }
        }
        Ok(())
    }

    /// Judges the complete replies at the start of `bytes` and returns their length.
    fn judge_all(&mut self, bytes: &[u8], keys: &Keys, form: &Form, tally: &mut Tally) -> Result<usize> {
        let now = Instant::now();
        let mut used = 0;
        while used < bytes.len() {
            let Some((operation, since)) = self.waiting.front().copied() else {
                tally.wrong += 1;
                let words = format!("a reply that nobody asked for: {}", bytes[used..].escape_ascii());
                tally.first_wrong.get_or_insert(words);
                bail!("a reply that nobody asked for");
            };
            let asked = self.waiting.range(..self.operations);
            let asked = asked.map(|(operation, _)| keys.get(operation.key));
            let Some((length, verdict)) = form.judge(&bytes[used..], asked, operation.set) else {
                break;
            };
            self.waiting.drain(..self.operations);
            let wrong = matches!(verdict, Verdict::Wrong(_));
            tally.reply(verdict, operation.set, now.saturating_duration_since(since));
            if wrong {
                bail!("a wrong reply");
            }
            used += length;
        }
        Ok(used)
    }
}
