//! The protocols of a run: each request and reply in its words.

use std::net::TcpStream;

use anyhow::Result;
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::{
    memcache, mysql, redis,
    tls::{Connector, Stream},
    verdict::Verdict,
};

pub(crate) use mysql::{Login, Statements};

/// A protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Protocol {
    /// memcached's text protocol
    #[default]
    Memcached,
    /// Redis' protocol, RESP2
    Redis,
    /// MySQL's protocol, statements as texts
    Mysql,
    /// MySQL's protocol, statements that each connection prepares once
    MysqlPrepared,
}

/// The server's side of one connection.
pub(crate) enum Conversation {
    Memcached(memcache::Conversation),
    Redis(redis::Conversation),
    Mysql(mysql::Conversation),
}

impl Protocol {
    /// Its name in Proxima's configuration.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Redis => "redis",
            Self::Mysql | Self::MysqlPrepared => "mysql",
        }
    }

    /// Whether a session waits for each reply before it asks on, and has a login first.
    pub(crate) const fn is_mysql(self) -> bool {
        matches!(self, Self::Mysql | Self::MysqlPrepared)
    }

    /// Makes clients of these connections, by TLS if there is a connector: shakes hands, and logs in where
    /// that comes first, with what each has prepared. `wait` returns when a connection may have something to
    /// read, and lets servers in this thread answer before.
    pub(crate) fn enter(
        self,
        sockets: Vec<TcpStream>,
        tls: Option<&Connector>,
        wait: &mut dyn FnMut(&TcpStream) -> Result<()>,
    ) -> Result<Vec<(Stream, Statements)>> {
        let first = tls.filter(|_| !self.is_mysql());
        let streams = sockets.into_iter().map(|socket| Stream::new(socket, first));
        let mut streams = streams.collect::<Result<Vec<_>>>()?;
        if !self.is_mysql() {
            return Ok(streams
                .into_iter()
                .map(|stream| (stream, Statements::default()))
                .collect());
        }
        let prepares = self == Self::MysqlPrepared;
        let prepared = mysql::log_in(streams.iter_mut().collect(), prepares, tls, wait)?;
        Ok(streams.into_iter().zip(prepared).collect())
    }

    /// The login that a connection begins with, message by message.
    pub(crate) fn login(self) -> Option<Login> {
        self.is_mysql()
            .then(|| Login::new(false, self == Self::MysqlPrepared))
    }

    /// A client's last bytes before it closes its connection.
    pub(crate) const fn goodbye(self) -> &'static [u8] {
        match self {
            Self::Memcached | Self::Redis => b"",
            Self::Mysql | Self::MysqlPrepared => mysql::request::GOODBYE,
        }
    }

    /// Appends a request for the value of a key. `statements`: what its connection has prepared.
    pub(crate) fn append_get(self, key: &[u8], statements: Statements, out: &mut Vec<u8>) {
        match self {
            Self::Memcached => memcache::request::append_get(key, out),
            Self::Redis => redis::request::append_get(key, out),
            Self::Mysql => mysql::request::append_get(key, out),
            Self::MysqlPrepared => mysql::request::append_prepared_get(statements, key, out),
        }
    }

    /// Appends a request that stores the value of `size` bytes that belongs to the key. `statements`: what
    /// its connection has prepared.
    pub(crate) fn append_set(self, key: &[u8], size: usize, statements: Statements, out: &mut Vec<u8>) {
        match self {
            Self::Memcached => memcache::request::append_set(key, size, out),
            Self::Redis => redis::request::append_set(key, size, out),
            Self::Mysql => mysql::request::append_set(key, size, out),
            Self::MysqlPrepared => mysql::request::append_prepared_set(statements, key, size, out),
        }
    }

    /// The reply to a set.
    pub(crate) const fn stored(self) -> &'static [u8] {
        match self {
            Self::Memcached => b"STORED\r\n",
            Self::Redis => b"+OK\r\n",
            Self::Mysql | Self::MysqlPrepared => mysql::reply::STORED,
        }
    }

    /// The end of a hit behind its value.
    pub(crate) const fn hit_end(self) -> &'static [u8] {
        match self {
            Self::Memcached => b"\r\nEND\r\n",
            Self::Redis => b"\r\n",
            Self::Mysql | Self::MysqlPrepared => mysql::reply::END,
        }
    }

    /// The whole reply to a get of a key that is not there.
    pub(crate) const fn miss(self) -> &'static [u8] {
        match self {
            Self::Memcached => b"END\r\n",
            Self::Redis => b"$-1\r\n",
            Self::Mysql | Self::MysqlPrepared => mysql::reply::EMPTY,
        }
    }

    /// Appends what stands before the value of a hit.
    pub(crate) fn append_announcement(self, key: &[u8], size: usize, out: &mut Vec<u8>) {
        match self {
            Self::Memcached => memcache::request::append_value_line(key, size, out),
            Self::Redis => redis::request::append_length(b'$', size, out),
            Self::Mysql | Self::MysqlPrepared => {
                mysql::reply::append_announcement(self == Self::MysqlPrepared, size, out);
            }
        }
    }

    /// Judges the reply to a get (or a set) of `key` at the start of `bytes`. Returns its length and its
    /// contents. `None`: more bytes are needed.
    pub(crate) fn judge(
        self,
        bytes: &[u8],
        key: &[u8],
        set: bool,
        value_size: usize,
    ) -> Option<(usize, Verdict)> {
        match self {
            Self::Memcached => memcache::reply::judge(bytes, key, set, value_size),
            Self::Redis => redis::reply::judge(bytes, key, set, value_size),
            Self::Mysql | Self::MysqlPrepared => {
                mysql::reply::judge(bytes, self == Self::MysqlPrepared, key, set, value_size)
            }
        }
    }

    /// Whether these bytes are the whole reply of a server or proxy that is ready to a get of a key that it
    /// may not have.
    pub(crate) fn is_ready(self, answer: &[u8]) -> bool {
        match self {
            Self::Memcached => answer.ends_with(b"END\r\n"),
            Self::Redis => answer.starts_with(b"$") && answer.ends_with(b"\r\n"),
            Self::Mysql | Self::MysqlPrepared => mysql::reply::is_result(answer),
        }
    }

    /// Whether these bytes are an error, whole.
    pub(crate) fn is_refusal(self, answer: &[u8]) -> bool {
        match self {
            Self::Memcached => answer.starts_with(b"SERVER_ERROR") && answer.ends_with(b"\r\n"),
            Self::Redis => answer.starts_with(b"-") && answer.ends_with(b"\r\n"),
            Self::Mysql | Self::MysqlPrepared => mysql::reply::is_refusal(answer),
        }
    }

    /// A new connection to a stand-in server.
    pub(crate) fn conversation(self) -> Conversation {
        match self {
            Self::Memcached => Conversation::Memcached(memcache::Conversation::default()),
            Self::Redis => Conversation::Redis(redis::Conversation::default()),
            Self::Mysql | Self::MysqlPrepared => Conversation::Mysql(mysql::Conversation::default()),
        }
    }
}

impl Conversation {
    /// Appends what the server says before the client has said a word.
    pub(crate) fn greet(&self, out: &mut Vec<u8>) {
        if let Self::Mysql(_) = self {
            mysql::Conversation::greet(out);
        }
    }

    /// Takes the next `bytes` of the connection, appends the replies they complete to `out` and returns how
    /// many keys were read or written. Values are `value_size` bytes long.
    ///
    /// # Errors
    /// On bytes that no client sends.
    pub(crate) fn feed(&mut self, bytes: &[u8], value_size: usize, out: &mut Vec<u8>) -> Result<usize> {
        match self {
            Self::Memcached(conversation) => conversation.feed(bytes, value_size, out),
            Self::Redis(conversation) => conversation.feed(bytes, value_size, out),
            Self::Mysql(conversation) => conversation.feed(bytes, value_size, out),
        }
    }
}
