//! The way to one address: a connection for one request at a time, and another one when that fails.

use std::{net::SocketAddr, time::Instant};

use super::{
    answer::{Failure, Found, Parsed},
    connection::Connection,
    memcached,
    mysql::{self, Dialect},
    options::{Options, Store},
    rows,
    shown::Shown,
    tables,
};

pub(super) struct Link<'a> {
    address: SocketAddr,
    options: &'a Options,
    connection: Option<Connection>,
    /// The versions that the present connection was shown, or the last one.
    shown: Shown,
}

impl<'a> Link<'a> {
    pub(super) fn new(address: SocketAddr, options: &'a Options) -> Self {
        Self {
            address,
            options,
            connection: None,
            shown: Shown::default(),
        }
    }

    /// The present connection has read this version of a key, or was told that it is written. Returns whether
    /// it had been shown a newer one before.
    pub(super) fn note(&mut self, key: u32, version: u64) -> bool {
        self.shown.note(key, version)
    }

    /// Makes what all values are stored in, where that has to be made.
    pub(super) fn create(&mut self) -> Result<(), Failure> {
        match self.options.store() {
            Store::Rows => self.run(rows::CREATE.as_bytes()),
            Store::Memcached | Store::Tables => Ok(()),
        }
    }

    /// Stores the first value of a key. It is no write that counts, and changes nothing where it was stored
    /// through another address already.
    pub(super) fn fill(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        match self.options.store() {
            Store::Memcached => self.set(key, value),
            Store::Rows => self.run(&rows::fill(key, value)),
            Store::Tables => self.run(&tables::fill(key, value)),
        }
    }

    /// Writes a value.
    pub(super) fn set(&mut self, key: &str, value: &[u8]) -> Result<(), Failure> {
        let ttl = self.options.ttl.as_secs();
        match self.options.store() {
            Store::Memcached => self.ask(
                |_| memcached::set(key, ttl, value),
                |reply, _| memcached::parse_stored(reply),
            ),
            Store::Rows => self.ask(|dialect| rows::set(key, value, dialect), mysql::parse_done),
            Store::Tables => self.run(&tables::set(key, value)),
        }
    }

    /// Reads a value, if there is one.
    pub(super) fn get(&mut self, key: &str) -> Result<Option<Found>, Failure> {
        match self.options.store() {
            Store::Memcached => self.ask(
                |_| memcached::get(key),
                |reply, _| memcached::parse_value(key, reply),
            ),
            Store::Rows => {
                let number = rows::number();
                self.ask(
                    |dialect| rows::get(key, number, dialect),
                    |reply, dialect| rows::parse(number, reply, dialect),
                )
            }
            Store::Tables => self.ask(
                |_| mysql::query(&tables::get(key)),
                |reply, dialect| tables::parse(key, reply, dialect),
            ),
        }
    }

    /// Deletes the values of these keys, which begin with `prefix`, where nothing expires by itself.
    pub(super) fn clear(&mut self, prefix: &str, keys: &[String]) -> Result<(), Failure> {
        match self.options.store() {
            Store::Memcached => Ok(()),
            Store::Rows => self.run(&rows::clear(prefix)),
            Store::Tables => keys.iter().try_for_each(|key| self.run(&tables::clear(key))),
        }
    }

    /// Runs a text of MySQL that has no rows, whatever reads and writes are.
    fn run(&mut self, text: &[u8]) -> Result<(), Failure> {
        self.exchange(false, |_| mysql::query(text), mysql::parse_done)
    }

    /// Reads or writes.
    fn ask<T>(
        &mut self,
        request: impl FnOnce(Dialect) -> Vec<u8>,
        parse: impl Fn(&[u8], Dialect) -> Parsed<T>,
    ) -> Result<T, Failure> {
        self.exchange(self.options.is_prepared(), request, parse)
    }

    fn exchange<T>(
        &mut self,
        is_prepared: bool,
        request: impl FnOnce(Dialect) -> Vec<u8>,
        parse: impl Fn(&[u8], Dialect) -> Parsed<T>,
    ) -> Result<T, Failure> {
        let deadline = Instant::now() + self.options.timeout;
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let made = Connection::open(self.address, self.options, deadline)?;
                self.shown = Shown::default();
                made
            }
        };
        if is_prepared {
            connection.prepare(deadline)?;
        }
        let dialect = connection.dialect();
        let answer = connection.ask(&request(dialect), deadline, |reply| parse(reply, dialect));
        let is_in_step = match &answer {
            Ok(_) => true,
            Err(Failure::Refused(words)) => self.options.protocol.is_mysql() || memcached::is_in_step(words),
            Err(Failure::Lost(_) | Failure::Wrong(_) | Failure::Foreign(_)) => false,
        };
        if is_in_step {
            self.connection = Some(connection);
        }
        answer
    }
}
