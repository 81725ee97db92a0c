//! One client's connection to one address: a request, its reply, and a new connection when that fails.

use std::{
    io::{self, ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

use super::{
    answer::{Failure, LONGEST_REPLY, Parsed, wrong},
    memcached, mysql,
    options::Options,
};
use crate::{net::wait_for_words, protocol::Protocol};

pub(super) struct Link {
    pub(super) address: SocketAddr,
    protocol: Protocol,
    timeout: Duration,
    stream: Option<TcpStream>,
    /// The number of connections that were made so far.
    connections: u32,
}

impl Link {
    pub(super) fn new(address: SocketAddr, options: &Options) -> Self {
        Self {
            address,
            protocol: options.protocol,
            timeout: options.timeout,
            stream: None,
            connections: 0,
        }
    }

    /// The number of the present connection, or of the last one.
    pub(super) const fn connection(&self) -> u32 {
        self.connections
    }

    /// Stores `value` for `ttl` seconds; 0: for ever.
    pub(super) fn set(&mut self, key: &str, ttl: u64, value: &[u8]) -> Result<(), Failure> {
        match self.protocol.is_mysql() {
            true => self.ask(&mysql::set(key, value), mysql::parse_done),
            false => self.ask(&memcached::set(key, ttl, value), memcached::parse_stored),
        }
    }

    /// The value, if there is one.
    pub(super) fn get(&mut self, key: &str) -> Result<Option<Vec<u8>>, Failure> {
        match self.protocol.is_mysql() {
            true => self.ask(&mysql::get(key), mysql::parse_value),
            false => self.ask(&memcached::get(key), |reply| memcached::parse_value(key, reply)),
        }
    }

    /// Makes the place of all values, where it has to be made.
    pub(super) fn create(&mut self) -> Result<(), Failure> {
        match self.protocol.is_mysql() {
            true => self.ask(&mysql::create(), mysql::parse_done),
            false => Ok(()),
        }
    }

    /// Deletes what has a key that begins so, where nothing expires by itself.
    pub(super) fn delete(&mut self, prefix: &str) -> Result<(), Failure> {
        match self.protocol.is_mysql() {
            true => self.ask(&mysql::delete(prefix), mysql::parse_done),
            false => Ok(()),
        }
    }

    fn ask<T>(&mut self, request: &[u8], parse: impl Fn(&[u8]) -> Parsed<T>) -> Result<T, Failure> {
        let answer = self.exchange(request, parse).unwrap_or_else(|error| {
            let words = match error.kind() {
                // The errors of the kernel when the time for a read or write is over.
                ErrorKind::WouldBlock | ErrorKind::TimedOut => format!("nothing within {:?}", self.timeout),
                _ => error.to_string(),
            };
            Err(Failure::Lost(words))
        });
        let in_step = match &answer {
            Ok(_) => true,
            Err(Failure::Refused(words)) => self.protocol.is_mysql() || memcached::is_in_step(words),
            Err(Failure::Lost(_) | Failure::Wrong(_)) => false,
        };
        if !in_step {
            self.stream = None;
        }
        answer
    }

    /// Logs in, where that comes first.
    fn enter(&self, socket: TcpStream) -> io::Result<TcpStream> {
        let entered = self.protocol.enter(vec![socket], None, &mut wait_for_words);
        let mut streams = entered.map_err(|error| io::Error::other(format!("{error:#}")))?;
        let entered = streams.pop().ok_or(ErrorKind::NotConnected)?;
        Ok(entered.0.into_socket())
    }

    fn exchange<T>(
        &mut self,
        request: &[u8],
        parse: impl Fn(&[u8]) -> Parsed<T>,
    ) -> io::Result<Result<T, Failure>> {
        let deadline = Instant::now() + self.timeout;
        let stream = match self.stream.take() {
            Some(stream) => self.stream.insert(stream),
            None => {
                let stream = TcpStream::connect_timeout(&self.address, self.timeout)?;
                // Where no process listens on an ephemeral port of this machine, a connection may meet
                // itself.
                if stream.local_addr()? == self.address {
                    return Err(ErrorKind::ConnectionRefused.into());
                }
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(self.timeout))?;
                stream.set_read_timeout(Some(self.timeout))?;
                self.connections += 1;
                self.stream.insert(self.enter(stream)?)
            }
        };
        stream.write_all(request)?;
        let mut reply = Vec::new();
        let mut chunk = [0; 16 * 1024];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            stream.set_read_timeout(Some(left))?;
            match stream.read(&mut chunk) {
                Ok(0) => return Err(io::Error::other("the connection was closed by the other side")),
                Ok(length) => reply.extend_from_slice(&chunk[..length]),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            }
            match parse(&reply) {
                Some((length, answer)) if length == reply.len() => return Ok(answer),
                Some(_) => return Ok(Err(wrong("more than was asked for", &reply))),
                None if reply.len() > LONGEST_REPLY => {
                    return Ok(Err(wrong("a reply without an end", &reply)));
                }
                None => {}
            }
        }
    }
}
