//! Requests and replies in the words of a protocol.

use proxima_wire::{
    memcache::{self, Command},
    message::{Parse, Parsed},
    resp,
};

/// A protocol.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Words {
    Memcached,
    Redis,
}

/// A request at the beginning of some bytes.
pub(super) struct Heard {
    /// Its bytes.
    pub(super) len: usize,
    /// The key that it reads; `None`: it stores a value.
    pub(super) read: Option<String>,
}

impl Words {
    /// The protocol's name in configurations.
    pub(super) const fn protocol(self) -> &'static str {
        match self {
            Self::Memcached => "memcached",
            Self::Redis => "redis",
        }
    }

    /// A server's reply to the proxy's login.
    pub(super) const fn welcome(self) -> &'static [u8] {
        match self {
            Self::Memcached => b"VERSION 1.6.18\r\n",
            Self::Redis => b"*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n",
        }
    }

    pub(super) fn set(self, key: &str, value: &str) -> String {
        match self {
            Self::Memcached => format!("set {key} 0 0 {}\r\n{value}\r\n", value.len()),
            Self::Redis => format!("*3\r\n$3\r\nSET\r\n{}{}", bulk(key), bulk(value)),
        }
    }

    /// The reply to a set.
    pub(super) const fn stored(self) -> &'static str {
        match self {
            Self::Memcached => "STORED\r\n",
            Self::Redis => "+OK\r\n",
        }
    }

    /// A request for these keys, of which Redis' clients have one.
    pub(super) fn get(self, keys: &[String]) -> String {
        match self {
            Self::Memcached => format!("get {}\r\n", keys.join(" ")),
            Self::Redis => keys
                .iter()
                .map(|key| format!("*2\r\n$3\r\nGET\r\n{}", bulk(key)))
                .collect(),
        }
    }

    /// The reply to a request for keys with these values.
    pub(super) fn hits(self, hits: &[(String, String)]) -> String {
        match self {
            Self::Memcached => {
                let lines = hits
                    .iter()
                    .map(|(key, value)| format!("VALUE {key} 0 {}\r\n{value}\r\n", value.len()));
                lines.collect::<String>() + "END\r\n"
            }
            Self::Redis => hits.iter().map(|(_, value)| bulk(value)).collect(),
        }
    }

    /// The first request of what a server gets; `None`: there is none.
    pub(super) fn hear(self, bytes: &[u8]) -> Option<Heard> {
        let (request, is_get) = match self {
            Self::Memcached => {
                let Parsed::Head(request) = memcache::request(bytes, &memcache::Limits::default()) else {
                    return None;
                };
                (request, request.command == Command::Get as u16)
            }
            Self::Redis => {
                let limits = resp::Limits { value: u64::MAX };
                let Parsed::Head(request) = resp::request(&mut Parse::default(), bytes, &limits) else {
                    return None;
                };
                (request, Some(request.command) == resp::Command::find(b"GET"))
            }
        };
        let message = &bytes[..request.len() as usize];
        Some(Heard {
            len: message.len(),
            read: is_get.then(|| String::from_utf8_lossy(request.key.of(message)).into_owned()),
        })
    }
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}
