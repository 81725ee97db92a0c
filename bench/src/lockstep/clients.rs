//! The clients of a lockstep run: blocking sockets that write a batch each, then read it back each.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    rc::Rc,
};

use anyhow::{Context, Result, bail, ensure};

use super::{backends::STUCK, options::Shape};
use crate::{
    memcache::{
        reply::{Verdict, judge},
        request,
    },
    net::connect_many,
    workload::{Keys, Operation, Operations},
};

/// The reply to a set.
const STORED: &[u8] = b"STORED\r\n";

/// The end of a hit after its value.
const HIT_END: &[u8] = b"\r\nEND\r\n";

/// How thoroughly replies are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Every byte.
    Whole,
    /// The framing, the lengths, and the key inside each value: cheap, and enough to see a misrouted reply.
    Framing,
}

/// Connections to the proxy, and their next requests.
pub(crate) struct Clients {
    connections: Vec<Connection>,
    keys: Rc<Keys>,
    operations: Operations,
    pipeline: usize,
    value_size: usize,
    hit_length: usize,
    received: Vec<u8>,
}

struct Connection {
    stream: TcpStream,
    requests: Vec<u8>,
    batch: Vec<Operation>,
}

impl Clients {
    /// Connects the clients of `shape`.
    pub(crate) fn connect(
        address: SocketAddr,
        shape: &Shape,
        keys: Rc<Keys>,
        operations: Operations,
    ) -> Result<Self> {
        let connections = connect_many(&vec![address; shape.clients])?
            .into_iter()
            .map(|stream| {
                stream.set_read_timeout(Some(STUCK))?;
                stream.set_write_timeout(Some(STUCK))?;
                Ok(Connection {
                    stream,
                    requests: Vec::new(),
                    batch: Vec::new(),
                })
            })
            .collect::<Result<_>>()?;
        let (pipeline, value_size) = (shape.pipeline, shape.value_size);
        let hit_length = hit_length(&keys, value_size);
        Ok(Self {
            connections,
            keys,
            operations,
            pipeline,
            value_size,
            hit_length,
            received: Vec::new(),
        })
    }

    /// The keys that are asked for.
    pub(crate) fn keys(&self) -> Rc<Keys> {
        Rc::clone(&self.keys)
    }

    /// Requests of all clients in a round.
    pub(crate) fn batch(&self) -> usize {
        self.connections.len() * self.pipeline
    }

    /// Lets every client write its next batch, in one write each.
    pub(crate) fn send(&mut self) -> Result<()> {
        for connection in &mut self.connections {
            connection.requests.clear();
            connection.batch.clear();
            connection
                .batch
                .extend(self.operations.by_ref().take(self.pipeline));
            for operation in &connection.batch {
                let key = self.keys.get(operation.key);
                if operation.set {
                    request::append_set(key, self.value_size, &mut connection.requests);
                } else {
                    request::append_get(key, &mut connection.requests);
                }
            }
        }
        for connection in &mut self.connections {
            connection
                .stream
                .write_all(&connection.requests)
                .context("the proxy takes no more requests")?;
        }
        Ok(())
    }

    /// Lets every client read and judge the replies to its batch.
    pub(crate) fn receive(&mut self, check: Check) -> Result<()> {
        for connection in &mut self.connections {
            let sets = connection.batch.iter().filter(|operation| operation.set).count();
            let gets = connection.batch.len() - sets;
            self.received
                .resize(sets * STORED.len() + gets * self.hit_length, 0);
            read_all(&mut connection.stream, &mut self.received)?;
            let mut rest = &self.received[..];
            for operation in &connection.batch {
                let length = if operation.set {
                    STORED.len()
                } else {
                    self.hit_length
                };
                let (reply, following) = rest.split_at(length);
                rest = following;
                let key = self.keys.get(operation.key);
                let good = match check {
                    _ if operation.set => reply == STORED,
                    Check::Whole => judge(reply, key, false, self.value_size) == Some((length, Verdict::Hit)),
                    Check::Framing => framed(reply, key, self.value_size),
                };
                ensure!(good, "a client got a wrong reply; it begins {}", begin(reply));
            }
        }
        Ok(())
    }
}

/// Whether `reply`, of a hit's length, has the announcement and the end of a hit on `key`, and the key in its
/// value.
fn framed(reply: &[u8], key: &[u8], value_size: usize) -> bool {
    let (announcement, data) = reply.split_at(reply.len() - HIT_END.len() - value_size);
    announcement
        .strip_prefix(b"VALUE ")
        .is_some_and(|rest| rest.starts_with(key))
        && announcement.ends_with(b"\r\n")
        && data.starts_with(&key[..key.len().min(value_size)])
        && data.ends_with(HIT_END)
}

/// Length of the reply to a get that finds its value.
fn hit_length(keys: &Keys, value_size: usize) -> usize {
    let mut reply = Vec::new();
    request::append_value(keys.get(0), value_size, &mut reply);
    reply.len() + b"END\r\n".len()
}

/// The part of `bytes` that an error shows.
fn begin(bytes: &[u8]) -> std::slice::EscapeAscii<'_> {
    bytes[..bytes.len().min(200)].escape_ascii()
}

/// Fills `buffer`. If no more bytes come, the error shows those that came.
fn read_all(stream: &mut TcpStream, buffer: &mut [u8]) -> Result<()> {
    let mut length = 0;
    while length < buffer.len() {
        match stream.read(&mut buffer[length..]) {
            Ok(0) => bail!(
                "a client's connection was closed; it had received '{}'",
                begin(&buffer[..length])
            ),
            Ok(more) => length += more,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!(
                    "a client waited {STUCK:?} for its replies; it had received '{}'",
                    begin(&buffer[..length])
                )
            }
            Err(error) => return Err(error).context("a client's connection broke"),
        }
    }
    Ok(())
}
