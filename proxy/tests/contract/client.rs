//! A client of the protocol.

use std::{
    io,
    net::{SocketAddr, TcpStream},
    ops::{Deref, DerefMut},
    time::Duration,
};

use crate::{dialect::answer, scramble::Scramble, server::Talk};

pub(crate) struct Client(Talk);

impl Client {
    /// Connects and says who it is.
    pub(crate) fn connect(address: SocketAddr, password: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // A proxy that never answers is a failure, not a test that never ends.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut talk = Talk::new(stream, Some(Scramble::connecting(200)));
        // The transform's first word; the protocol's is the proxy's.
        talk.say("").unwrap();
        let greeting = talk.hear().unwrap();
        let salt = greeting.strip_prefix("HELLO ").unwrap();
        talk.say(&format!("LOGIN app {}\n", answer(salt, password)))
            .unwrap();
        Self(talk)
    }

    /// Connects, and is welcome.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut client = Self::connect(address, "open sesame");
        assert_eq!(client.hear().unwrap(), "WELCOME");
        client
    }

    /// Leaves with a reset.
    pub(crate) fn reset(self) {
        self.0.reset();
    }

    /// Connects plainly, and says this in place of `SECURE`; what it is answered.
    pub(crate) fn plain(address: SocketAddr, first: &str) -> (Self, io::Result<String>) {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut talk = Talk::new(stream, None);
        assert_eq!(talk.hear().unwrap(), "HELLO pepper");
        talk.say(first).unwrap();
        let answer = talk.hear();
        (Self(talk), answer)
    }

    /// Connects plainly, asks for more, and is welcome.
    pub(crate) fn late(address: SocketAddr) -> Self {
        let (mut client, agreed) = Self::plain(address, "SECURE\n");
        assert_eq!(agreed.unwrap(), "GO");
        client.0.upgrade(Scramble::connecting(201));
        let login = format!("LOGIN app {}\n", answer("pepper", "open sesame"));
        client.say(&login).unwrap();
        assert_eq!(client.hear().unwrap(), "WELCOME");
        client
    }

    /// Is nothing more said, and the connection closed?
    pub(crate) fn is_closed(&mut self) -> bool {
        let end = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
        self.hear().is_err_and(|error| end.contains(&error.kind()))
    }

    /// One request, one line of reply.
    pub(crate) fn ask(&mut self, line: &str) -> io::Result<String> {
        self.say(&format!("{line}\n"))?;
        self.hear()
    }

    /// All lines of a reply that has replies within replies.
    pub(crate) fn hear_nested(&mut self) -> io::Result<Vec<String>> {
        let (mut lines, mut left) = (Vec::new(), 1);
        while left > 0 {
            let line = self.hear()?;
            let own = line.strip_prefix("* ").and_then(|count| count.parse().ok());
            left = left - 1 + own.unwrap_or(0);
            lines.push(line);
        }
        Ok(lines)
    }

    /// All lines of a reply in parts.
    pub(crate) fn hear_many(&mut self) -> io::Result<Vec<String>> {
        let mut lines = Vec::new();
        loop {
            let line = self.hear()?;
            let last = !line.starts_with('-');
            lines.push(line);
            if last {
                return Ok(lines);
            }
        }
    }
}

impl Deref for Client {
    type Target = Talk;

    fn deref(&self) -> &Talk {
        &self.0
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Talk {
        &mut self.0
    }
}
