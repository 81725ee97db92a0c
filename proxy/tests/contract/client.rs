//! A client of the test protocol.

use std::{
    io::{self, Read as _, Write as _},
    net::{SocketAddr, TcpStream},
    ops::{Deref, DerefMut},
    time::Duration,
};

use crate::{
    lines::answer,
    scramble::{Scramble, Secret},
    server::Talk,
    tls::{self, Tls},
};

pub(crate) struct Client(Talk);

impl Client {
    /// Connects and says nothing, but what its transform begins with.
    pub(crate) fn silent(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        // If the proxy never answers, the test fails instead of running for ever.
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut talk = Talk::new(stream, Some(Box::new(Scramble::connecting(200))));
        talk.say("").unwrap();
        Self(talk)
    }

    /// What a client that connects is greeted with.
    pub(crate) fn greeting(address: SocketAddr) -> String {
        let greeting = Self::silent(address).hear().unwrap();
        greeting.strip_prefix("HELLO ").unwrap().to_owned()
    }

    /// Connects and logs in.
    pub(crate) fn connect(address: SocketAddr, password: &str) -> Self {
        // The client begins the transform's handshake. The proxy begins the protocol.
        let Self(mut talk) = Self::silent(address);
        let greeting = talk.hear().unwrap();
        let salt = greeting.strip_prefix("HELLO ").unwrap();
        talk.say(&format!("LOGIN app {}\n", answer(salt, password)))
            .unwrap();
        Self(talk)
    }

    /// Connects, and logs in where this greeting stands in place of a salt.
    pub(crate) fn connect_greeted(address: SocketAddr, greeting: &str) -> Self {
        let mut client = Self::silent(address);
        client.hear().unwrap();
        client
            .say(&format!("LOGIN app {}\n", answer(greeting, "open sesame")))
            .unwrap();
        assert_eq!(client.hear().unwrap(), "WELCOME");
        client
    }

    /// Connects, and asserts that the login succeeds.
    pub(crate) fn new(address: SocketAddr) -> Self {
        let mut client = Self::connect(address, "open sesame");
        assert_eq!(client.hear().unwrap(), "WELCOME");
        client
    }

    /// The same, whose requests have a dedicated connection each.
    pub(crate) fn each(address: SocketAddr) -> Self {
        let mut client = Self::new(address);
        assert_eq!(client.ask("EACH k").unwrap(), "+");
        client
    }

    /// Closes the connection with a reset.
    pub(crate) fn reset(self) {
        self.0.reset();
    }

    /// Connects plainly, and sends this in place of `SECURE`. Returns the answer.
    pub(crate) fn plain(address: SocketAddr, first: &str) -> (Self, io::Result<String>) {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut talk = Talk::new(stream, None);
        assert_eq!(talk.hear().unwrap(), "HELLO pepper");
        talk.say(first).unwrap();
        let answer = talk.hear();
        (Self(talk), answer)
    }

    /// Connects plainly, asks for the transform, and asserts that the login succeeds.
    pub(crate) fn late(address: SocketAddr) -> Self {
        Self::upgraded(address, Box::new(Scramble::connecting(201)))
    }

    /// As [`Self::late`], with TLS.
    pub(crate) fn tls(address: SocketAddr) -> Self {
        Self::upgraded(address, Box::new(Tls::connecting(tls::LISTENER.to_owned())))
    }

    /// Connects by TLS, asks for another transform behind it, and asserts that the login succeeds.
    pub(crate) fn stacked(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let tls = || Box::new(Tls::connecting(tls::LISTENER.to_owned()));
        let mut talk = Talk::new(stream, Some(tls()));
        talk.say("").unwrap();
        assert_eq!(talk.hear().unwrap(), "HELLO pepper");
        talk.say("SECURE\n").unwrap();
        assert_eq!(talk.hear().unwrap(), "GO");
        talk.stack(Box::new(Scramble::connecting(202)));
        let mut client = Self(talk);
        client.log_in();
        client
    }

    fn log_in(&mut self) {
        let login = format!("LOGIN app {}\n", answer("pepper", "open sesame"));
        self.say(&login).unwrap();
        assert_eq!(self.hear().unwrap(), "WELCOME");
    }

    /// As [`Self::late`] and [`Self::tls`], but with the first bytes of the transform, and `more` through it,
    /// right behind the word that asks for it.
    pub(crate) fn eager(address: SocketAddr, mut secret: Box<dyn Secret>, more: &str) -> Self {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut greeting = *b"HELLO pepper\n";
        stream.read_exact(&mut greeting).unwrap();
        let mut first = b"SECURE\n".to_vec();
        secret.seal(b"", &mut first).unwrap();
        if !more.is_empty() {
            secret.seal(more.as_bytes(), &mut first).unwrap();
        }
        stream.write_all(&first).unwrap();
        let mut agreed = *b"GO\n";
        stream.read_exact(&mut agreed).unwrap();
        assert_eq!((&greeting, &agreed), (b"HELLO pepper\n", b"GO\n"));
        Self(Talk::new(stream, Some(secret)))
    }

    fn upgraded(address: SocketAddr, secret: Box<dyn Secret>) -> Self {
        let (mut client, agreed) = Self::plain(address, "SECURE\n");
        assert_eq!(agreed.unwrap(), "GO");
        client.0.upgrade(secret);
        client.log_in();
        client
    }

    /// Whether the connection is closed without another line.
    pub(crate) fn is_closed(&mut self) -> bool {
        let end = [io::ErrorKind::UnexpectedEof, io::ErrorKind::ConnectionReset];
        self.hear().is_err_and(|error| end.contains(&error.kind()))
    }

    /// Sends one request and returns its reply of one line.
    pub(crate) fn ask(&mut self, line: &str) -> io::Result<String> {
        self.say(&format!("{line}\n"))?;
        self.hear()
    }

    /// All lines of a nested reply.
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
