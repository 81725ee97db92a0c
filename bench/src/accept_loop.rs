//! A loop that accepts, answers and sees the end of each connection, and does nothing else: the least that a
//! connection for every request costs. It makes no system call that could be left out.

use std::{
    collections::HashMap,
    io::{ErrorKind, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    os::fd::AsRawFd,
};

use anyhow::Result;
use clap::Args;
use mio::{Events, Interest, Poll, Token, unix::SourceFd};
use rustix::net::{SocketFlags, accept_with};

use crate::{
    process::raise_descriptor_limit,
    protocol::{Conversation, Protocol},
};

const LISTENER: Token = Token(usize::MAX);

/// Accept connections, answer every read with the value of its key, and do nothing else
#[derive(Args, Debug)]
pub(crate) struct Options {
    /// The port on 127.0.0.1
    #[arg(long)]
    port: u16,
    /// The protocol of the clients
    #[arg(long, value_enum, default_value_t)]
    protocol: Protocol,
    /// Bytes of a value
    #[arg(long, short = 'd', default_value_t = 400)]
    value_size: usize,
}

struct Connection {
    stream: TcpStream,
    conversation: Conversation,
}

/// Runs `proxima-bench accept-loop`.
pub(crate) fn run(options: &Options) -> Result<()> {
    raise_descriptor_limit();
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, options.port)))?;
    listener.set_nonblocking(true)?;
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    poll.registry()
        .register(&mut SourceFd(&listener.as_raw_fd()), LISTENER, Interest::READABLE)?;
    let mut connections: HashMap<Token, Connection> = HashMap::new();
    let (mut scratch, mut reply) = (vec![0; 256 << 10], Vec::new());
    loop {
        match poll.poll(&mut events, None) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            other => other?,
        }
        for event in &events {
            if event.token() != LISTENER {
                let token = event.token();
                if let Some(connection) = connections.get_mut(&token)
                    && !connection.serve(options.value_size, &mut scratch, &mut reply)?
                {
                    connections.remove(&token);
                }
                continue;
            }
            while let Ok(accepted) = accept_with(&listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC) {
                let mut connection = Connection {
                    stream: TcpStream::from(accepted),
                    conversation: options.protocol.conversation(),
                };
                let mut greeting = Vec::new();
                connection.conversation.greet(&mut greeting);
                if connection.stream.write_all(&greeting).is_err() {
                    continue;
                }
                // Most often the request has come with the connection. Later bytes cause an event, as the
                // connection is registered after this check.
                if !connection.serve(options.value_size, &mut scratch, &mut reply)? {
                    continue;
                }
                let fd = connection.stream.as_raw_fd();
                poll.registry()
                    .register(&mut SourceFd(&fd), Token(fd as usize), Interest::READABLE)?;
                connections.insert(Token(fd as usize), connection);
            }
        }
    }
}

impl Connection {
    /// Answers what has come; `false`: the client has gone.
    fn serve(&mut self, value_size: usize, scratch: &mut [u8], reply: &mut Vec<u8>) -> Result<bool> {
        match self.stream.read(scratch) {
            Ok(0) => return Ok(false),
            Ok(length) => {
                reply.clear();
                self.conversation.feed(&scratch[..length], value_size, reply)?;
            }
            Err(error) => return Ok(error.kind() == ErrorKind::WouldBlock),
        }
        // Replies are smaller than a socket's buffer.
        Ok(self.stream.write_all(reply).is_ok())
    }
}
