//! The clients of a lockstep run: blocking sockets that write a batch each, then read it back each.

use std::{
    io::{ErrorKind, Read, Write},
    net::{SocketAddr, TcpStream},
    rc::Rc,
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};

use socket2::SockRef;

use super::{
    backends::{Backends, STUCK},
    options::{Connections, Shape},
    target::Target,
};
use crate::{
    form::{Check, Form},
    net::{connect, connect_many, wait_for_words},
    protocol::{Protocol, Statements},
    tls::{Connector, Stream},
    workload::{Keys, Operation, Operations},
};

/// Connections to the proxy, and their next requests.
pub(crate) struct Clients {
    connections: Vec<Connection>,
    keys: Rc<Keys>,
    operations: Operations,
    pipeline: usize,
    form: Form,
    protocol: Protocol,
    received: Vec<u8>,
    address: SocketAddr,
    after: Connections,
    tls: Option<Connector>,
}

#[derive(Default)]
struct Connection {
    /// `None`: it is made with the next batch.
    stream: Option<Stream>,
    /// The statements that it has prepared.
    statements: Statements,
    requests: Vec<u8>,
    batch: Vec<Operation>,
}

impl Clients {
    /// Connects the clients of `shape`.
    pub(crate) fn connect(
        target: &mut Target,
        shape: &Shape,
        keys: Rc<Keys>,
        operations: Operations,
    ) -> Result<Self> {
        let mut connections = Vec::new();
        connections.resize_with(shape.clients, Connection::default);
        let mut clients = Self {
            connections,
            form: shape.form(&keys),
            keys,
            operations,
            pipeline: shape.pipeline,
            protocol: shape.protocol,
            received: Vec::new(),
            address: target.address,
            after: shape.connections,
            tls: target.tls.clone(),
        };
        clients.open(target.backends.as_mut())?;
        Ok(clients)
    }

    /// Connects those that have no connection, while the servers behind the proxy serve.
    fn open(&mut self, mut backends: Option<&mut Backends>) -> Result<()> {
        let closed = |connection: &&mut Connection| connection.stream.is_none();
        let places: Vec<_> = self.connections.iter_mut().filter(closed).collect();
        let sockets = connect_many(&vec![self.address; places.len()])?
            .into_iter()
            .map(limited);
        let sockets = sockets.collect::<Result<_>>()?;
        let mut wait = |socket: &TcpStream| match &mut backends {
            Some(backends) => backends.serve_beside(socket),
            None => wait_for_words(socket),
        };
        let streams = self.protocol.enter(sockets, self.tls.as_ref(), &mut wait)?;
        for (place, (stream, statements)) in places.into_iter().zip(streams) {
            place.stream = Some(stream);
            place.statements = statements;
        }
        Ok(())
    }

    /// The keys that are asked for.
    pub(crate) fn keys(&self) -> Rc<Keys> {
        Rc::clone(&self.keys)
    }

    /// Changes the operations from now on.
    pub(crate) fn follow(&mut self, operations: Operations) {
        self.operations = operations;
    }

    /// Requests of all clients in a round.
    pub(crate) fn batch(&self) -> usize {
        self.connections.len() * self.pipeline
    }

    /// Steps of each request.
    pub(crate) fn steps(&self) -> usize {
        self.form.steps()
    }

    /// Lets every client write this step of its next batch, in one write each. `backends`: the servers behind
    /// the proxy.
    pub(crate) fn send(&mut self, step: usize, backends: Option<&mut Backends>) -> Result<()> {
        if self.protocol.is_mysql() {
            // A login waits for the other side: all are over before the first request leaves.
            self.open(backends)?;
        }
        for connection in &mut self.connections {
            connection.requests.clear();
            if step == 0 {
                let count = self.pipeline * self.form.operations();
                connection.batch.clear();
                connection.batch.extend(self.operations.by_ref().take(count));
            }
            for request in connection.batch.chunks(self.form.operations()) {
                let statements = connection.statements;
                self.form
                    .append(request, step, &self.keys, statements, &mut connection.requests);
            }
        }
        for connection in &mut self.connections {
            let stream = match &mut connection.stream {
                Some(stream) => stream,
                none => none.insert(Stream::new(limited(connect(self.address)?)?, self.tls.as_ref())?),
            };
            stream
                .write_all(&connection.requests)
                .context("the proxy takes no more requests")?;
        }
        Ok(())
    }

    /// Lets every client read and judge the replies to this step of its batch, and close its connection
    /// behind the last one if it is not kept.
    pub(crate) fn receive(&mut self, step: usize, check: Check) -> Result<()> {
        for connection in &mut self.connections {
            let requests = || connection.batch.chunks(self.form.operations());
            let length = |request: &[Operation]| self.form.reply_length(request[0].set, step);
            self.received.resize(requests().map(length).sum(), 0);
            let Some(stream) = &mut connection.stream else {
                continue;
            };
            read_all(stream, &mut self.received)?;
            let mut rest = &self.received[..];
            for request in requests() {
                let (reply, following) = rest.split_at(length(request));
                rest = following;
                let good = self.form.is_good(reply, (request, step), &self.keys, check);
                ensure!(good, "a client got a wrong reply; it begins {}", begin(reply));
            }
        }
        if step + 1 < self.steps() {
            return Ok(());
        }
        self.close()
    }

    fn close(&mut self) -> Result<()> {
        if self.after == Connections::Kept {
            return Ok(());
        }
        for mut stream in self.connections.iter_mut().filter_map(|one| one.stream.take()) {
            if self.after == Connections::Rst {
                SockRef::from(stream.socket()).set_linger(Some(Duration::ZERO))?;
            } else {
                stream.write_all(self.protocol.goodbye())?;
                stream.end()?;
            }
        }
        Ok(())
    }
}

/// Waits for nothing longer than a round may take.
fn limited(stream: TcpStream) -> Result<TcpStream> {
    stream.set_read_timeout(Some(STUCK))?;
    stream.set_write_timeout(Some(STUCK))?;
    Ok(stream)
}

/// The part of `bytes` that an error shows.
fn begin(bytes: &[u8]) -> std::slice::EscapeAscii<'_> {
    bytes[..bytes.len().min(200)].escape_ascii()
}

/// Fills `buffer`. If no more bytes come, the error shows those that came.
fn read_all(stream: &mut Stream, buffer: &mut [u8]) -> Result<()> {
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
