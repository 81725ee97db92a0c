//! Clients log in, many at a time, as the servers behind their proxy may be in this very thread.

use std::{
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};

use super::{login::Login, statements::Statements};
use crate::tls::{Connector, Stream};

/// No login takes as long.
const STUCK: Duration = Duration::from_secs(5);

/// Logs in over each of these connections, all of which are plain yet, and returns what each has prepared.
/// `wait` returns when the one that it is given may have something to read, and lets servers in this thread
/// answer before.
pub(crate) fn log_in(
    streams: Vec<&mut Stream>,
    prepares: bool,
    tls: Option<&Connector>,
    wait: &mut dyn FnMut(&TcpStream) -> Result<()>,
) -> Result<Vec<Statements>> {
    let deadline = Instant::now() + STUCK;
    let mut prepared = vec![Statements::default(); streams.len()];
    let mut waiting = Vec::with_capacity(streams.len());
    for (number, stream) in streams.into_iter().enumerate() {
        stream.socket().set_nonblocking(true)?;
        waiting.push(Client {
            number,
            stream,
            login: Login::new(tls.is_some(), prepares),
            said: Vec::new(),
        });
    }
    while let Some(first) = waiting.first() {
        if Instant::now() > deadline {
            bail!("{} clients were not logged in within {STUCK:?}", waiting.len());
        }
        wait(first.stream.socket())?;
        for client in &mut waiting {
            client.go_on(tls)?;
            prepared[client.number] = client.login.statements();
        }
        waiting.retain(|client| !client.login.is_over());
    }
    Ok(prepared)
}

struct Client<'a> {
    /// Its place among all.
    number: usize,
    stream: &'a mut Stream,
    login: Login,
    /// Bytes of the other side's message that is not complete.
    said: Vec<u8>,
}

impl Client<'_> {
    /// Reads what has come, and says what there is to say to it.
    fn go_on(&mut self, tls: Option<&Connector>) -> Result<()> {
        let mut part = [0; 4_096];
        loop {
            match self.stream.read(&mut part) {
                Ok(0) => bail!("the connection was closed during the login"),
                Ok(length) => self.said.extend_from_slice(&part[..length]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error.into()),
            }
            let mut words = Vec::new();
            let used = self.login.take(&self.said, &mut words)?;
            self.said.drain(..used);
            self.stream.write_all(&words)?;
            if self.login.wants_tls() {
                self.stream.socket().set_nonblocking(false)?;
                self.stream.upgrade(tls)?;
                words.clear();
                self.login.go_on_within_tls(&mut words);
                self.stream.write_all(&words)?;
                self.stream.socket().set_nonblocking(true)?;
            }
            if self.login.is_over() {
                self.stream.socket().set_nonblocking(false)?;
                return Ok(());
            }
        }
    }
}
