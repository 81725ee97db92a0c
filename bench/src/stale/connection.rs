//! A connection to one address: it logs in where that comes first, and then carries a request at a time.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::Instant,
};

use super::{
    answer::{Failure, LONGEST_REPLY, Parsed, wrong},
    mysql::{self, Dialect},
    options::Options,
    rows,
};
use crate::mysql::{Login, Statements};

pub(super) struct Connection {
    stream: TcpStream,
    dialect: Dialect,
}

impl Connection {
    /// Connects, and logs in where that comes first.
    pub(super) fn open(address: SocketAddr, options: &Options, deadline: Instant) -> Result<Self, Failure> {
        let stream = TcpStream::connect_timeout(&address, options.timeout)?;
        // Where no process listens on an ephemeral port of this machine, a connection may meet itself.
        if stream.local_addr()? == address {
            return Err(io::Error::from(ErrorKind::ConnectionRefused).into());
        }
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(options.timeout))?;
        let mut connection = Self {
            stream,
            dialect: Dialect::default(),
        };
        if options.protocol.is_mysql() {
            connection.log_in(deadline)?;
        }
        Ok(connection)
    }

    /// Prepares the statements of a run, unless that is done. They need the table.
    pub(super) fn prepare(&mut self, deadline: Instant) -> Result<(), Failure> {
        if self.dialect.prepared.is_none() {
            let get = self.prepare_text(rows::PREPARED_GET, deadline)?;
            let set = self.prepare_text(&rows::prepared_set(), deadline)?;
            self.dialect.prepared = Some(Statements { get, set });
        }
        Ok(())
    }

    /// How this connection speaks.
    pub(super) const fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Sends a request and returns its reply. After any error but a refusal the connection is of no use.
    pub(super) fn ask<T>(
        &mut self,
        request: &[u8],
        deadline: Instant,
        parse: impl Fn(&[u8]) -> Parsed<T>,
    ) -> Result<T, Failure> {
        self.stream.write_all(request)?;
        let mut reply = Vec::new();
        loop {
            self.receive(&mut reply, deadline)?;
            match parse(&reply) {
                Some((length, answer)) if length == reply.len() => return answer,
                Some(_) => return Err(wrong("more than was asked for", &reply)),
                None if reply.len() > LONGEST_REPLY => {
                    return Err(wrong("a reply without an end", &reply));
                }
                None => {}
            }
        }
    }

    fn log_in(&mut self, deadline: Instant) -> Result<(), Failure> {
        let (mut login, mut said, mut words) = (Login::anywhere(), Vec::new(), Vec::new());
        while !login.is_over() {
            self.receive(&mut said, deadline)?;
            let taken = login.take(&said, &mut words);
            let used = taken.map_err(|error| Failure::Lost(format!("{error:#}")))?;
            said.drain(..used);
            self.stream.write_all(&words)?;
            words.clear();
        }
        self.dialect.has_eof = login.has_eof();
        match said.is_empty() {
            true => Ok(()),
            false => Err(wrong("more than a login", &said)),
        }
    }

    fn prepare_text(&mut self, text: &str, deadline: Instant) -> Result<u32, Failure> {
        let dialect = self.dialect;
        self.ask(&mysql::prepare(text), deadline, |reply| {
            mysql::parse_prepared(reply, dialect)
        })
    }

    /// Appends what comes next.
    fn receive(&mut self, reply: &mut Vec<u8>, deadline: Instant) -> io::Result<()> {
        let mut chunk = [0; 16 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_read_timeout(Some(left))?;
            match self.stream.read(&mut chunk) {
                Ok(0) => return Err(io::Error::other("the connection was closed by the other side")),
                Ok(length) => {
                    reply.extend_from_slice(&chunk[..length]);
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}
