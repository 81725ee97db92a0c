//! The proxy's facts about a client's connection.

use std::net::SocketAddr;

use super::SubscriptionCounts;

/// The connection of one client, for protocols whose servers tell of it on request.
#[derive(Clone, Debug, Default)]
pub struct ConnectionFacts {
    /// The address of the client; `None` for a client of a Unix socket.
    pub peer: Option<SocketAddr>,
    /// The address to which it has connected; of a Unix socket the path.
    pub local: String,
    /// The number of the connection's descriptor.
    pub descriptor: i32,
    /// Seconds since it has connected.
    pub age: u64,
    /// Seconds since it has last sent anything or was answered.
    pub idle: u64,
    /// Its subscriptions.
    pub subscriptions: SubscriptionCounts,
    /// Bytes that have come, of this request and those behind it.
    pub received: usize,
    /// Bytes for which its read buffer has room beyond that.
    pub room: usize,
    /// Bytes of replies that leave next, and those that its buffer for them can hold.
    pub leaving: [usize; 2],
    /// Bytes of replies that wait for earlier ones.
    pub held: usize,
    /// Bytes of memory that it takes.
    pub memory: usize,
}
