//! One client: its connection, its login, and the messages of its request, one at a time.

use std::{
    collections::VecDeque,
    io::{ErrorKind, Read, Write},
    net::SocketAddr,
};

use anyhow::{Result, bail, ensure};
use mio::{Interest, Registry, Token, net::TcpStream};

use super::{
    driver::Driver,
    step::{Outcome, Step},
};
use crate::{
    mysql::{Login, request::GOODBYE},
    net::connect,
};

/// A client, connected or not.
pub(super) struct Client {
    address: SocketAddr,
    driver: &'static Driver,
    stream: Option<TcpStream>,
    /// The login that is under way.
    login: Option<Login>,
    /// The messages that are not answered yet. The first one has left, unless there is a login.
    steps: VecDeque<Step>,
    /// The statement that it has prepared.
    statement: u32,
    /// Bytes of a reply that is not complete.
    said: Vec<u8>,
    /// Bytes that leave at once.
    words: Vec<u8>,
}

/// The end of a request, or of a login without one.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    Good,
    /// It was refused, in these words.
    Refused(String),
}

impl Client {
    pub(super) fn new(address: SocketAddr, driver: &'static Driver) -> Self {
        Self {
            address,
            driver,
            stream: None,
            login: None,
            steps: VecDeque::new(),
            statement: 0,
            said: Vec::new(),
            words: Vec::new(),
        }
    }

    pub(super) fn driver(&self) -> &'static Driver {
        self.driver
    }

    pub(super) fn is_connected(&self) -> bool {
        self.stream.is_some()
    }

    /// Whether it waits for a reply.
    pub(super) fn is_busy(&self) -> bool {
        self.login.is_some() || !self.steps.is_empty()
    }

    /// Connects and logs in, and asks these messages behind it.
    pub(super) fn enter(
        &mut self,
        steps: impl IntoIterator<Item = Step>,
        registry: &Registry,
        token: Token,
    ) -> Result<()> {
        let stream = connect(self.address)?;
        stream.set_nonblocking(true)?;
        let mut stream = TcpStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        self.stream = Some(stream);
        self.login = Some(Login::of_driver(self.driver.capabilities));
        self.steps.extend(steps);
        Ok(())
    }

    /// Asks these messages. True: none of them has a reply.
    pub(super) fn ask(&mut self, steps: impl IntoIterator<Item = Step>) -> Result<bool> {
        self.steps.extend(steps);
        self.advance()
    }

    /// Says goodbye, and closes the connection.
    pub(super) fn leave(&mut self) {
        if let Some(stream) = &mut self.stream {
            // The other side may have closed it.
            let _ = stream.write(GOODBYE);
        }
        self.drop_connection();
    }

    /// Closes the connection without a word.
    pub(super) fn drop_connection(&mut self) {
        self.stream = None;
        self.login = None;
        self.steps.clear();
        self.said.clear();
    }

    /// Reads what has come. `None`: the request goes on.
    ///
    /// # Errors
    /// When the connection is lost, or a reply is wrong.
    pub(super) fn read(&mut self, scratch: &mut [u8]) -> Result<Option<End>> {
        loop {
            let Some(stream) = &mut self.stream else {
                return Ok(None);
            };
            let length = match stream.read(scratch) {
                Ok(0) => bail!("the connection was closed by the other side"),
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(error) => return Err(error.into()),
            };
            self.said.extend_from_slice(&scratch[..length]);
            let end = self.take()?;
            // A read that was not filled has found the end of what has come.
            if end.is_some() || length < scratch.len() {
                return Ok(end);
            }
        }
    }

    /// Takes the replies that have come as a whole.
    fn take(&mut self) -> Result<Option<End>> {
        if let Some(login) = &mut self.login {
            self.words.clear();
            let used = login.take(&self.said, &mut self.words)?;
            self.said.drain(..used);
            if !login.is_over() {
                self.write()?;
                return Ok(None);
            }
            self.login = None;
            if self.advance()? {
                return Ok(Some(End::Good));
            }
        }
        while !self.said.is_empty() {
            let Some(step) = self.steps.front() else {
                bail!("words that nobody asked for: {}", self.said.escape_ascii());
            };
            let Some((used, outcome)) = step.judge(&self.said, !self.driver.deprecates_eof())? else {
                break;
            };
            self.said.drain(..used);
            self.steps.pop_front();
            match outcome {
                Outcome::Done => {}
                Outcome::Prepared(statement) => self.statement = statement,
                Outcome::Refused(words) => {
                    self.steps.clear();
                    return Ok(Some(End::Refused(words)));
                }
            }
            if self.advance()? {
                ensure!(self.said.is_empty(), "more than the reply has come");
                return Ok(Some(End::Good));
            }
        }
        Ok(None)
    }

    /// Sends the next message that has a reply, and those before it, each in a packet of its own as drivers
    /// do. True: there is none.
    fn advance(&mut self) -> Result<bool> {
        while let Some(step) = self.steps.front() {
            self.words.clear();
            step.append(self.statement, &mut self.words);
            if step.has_reply() {
                self.write()?;
                return Ok(false);
            }
            self.steps.pop_front();
            self.write()?;
        }
        Ok(true)
    }

    /// Writes the words. The kernel takes as few at once, because all before them were read.
    fn write(&mut self) -> Result<()> {
        let Some(stream) = &mut self.stream else {
            bail!("there is no connection");
        };
        Ok(stream.write_all(&self.words)?)
    }
}
