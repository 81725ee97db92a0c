//! A connection of the control thread to one server, for questions one after the other. It is made as a lane
//! is: through the transform and the login of its protocol.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use proxima_wire::message::{Outcome, Parse, Parsed};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpStream, UnixStream},
    time::{sleep, timeout},
};

use crate::{
    members::Member,
    protocol::{
        Handshake, Login, LoginCache, MALFORMED, Message, NO_TLS, NO_UPGRADE, Protocol, ServerLogin, Stacked,
        StateSlot, Transform,
    },
    reactor::is_shortage,
};

/// Bytes of a step of a login, and of the head of a message.
const LONGEST: usize = 64 * 1024;
/// Bytes of a reply with all of its parts.
const LARGEST: usize = 1 << 30;
/// Bytes that are read at a time.
const CHUNK: usize = 16 * 1024;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// An open connection.
pub(in crate::control) struct Connection<'a> {
    member: &'a Member,
    protocol: &'static dyn Protocol,
    stream: Box<dyn Stream>,
    transform: Option<Box<dyn Transform>>,
    /// Received and not yet understood.
    heard: Vec<u8>,
    /// What the codec keeps for the connection.
    state: StateSlot,
    /// Our end; `None`: a Unix socket.
    local: Option<SocketAddr>,
}

impl<'a> Connection<'a> {
    /// Connects within the member's time-out.
    ///
    /// # Errors
    /// The member has no address, or does not accept the connection; a retry may help.
    pub(in crate::control) async fn open(member: &'a Member) -> io::Result<Self> {
        let unresolved = || io::Error::new(io::ErrorKind::AddrNotAvailable, "its name does not resolve");
        let socket = member.socket.as_ref().ok_or_else(unresolved)?;
        let (stream, local): (Box<dyn Stream>, _) = if let Some(address) = socket.as_socket() {
            let stream = connect(member, || TcpStream::connect(address)).await?;
            let local = stream.local_addr().ok().map(canonical);
            (Box::new(stream), local)
        } else {
            let path = socket.as_pathname().ok_or(io::ErrorKind::InvalidInput)?;
            (
                Box::new(connect(member, || UnixStream::connect(path)).await?),
                None,
            )
        };
        let protocol = member.protocol;
        Ok(Self {
            member,
            protocol,
            stream,
            transform: member.first_transform(),
            heard: Vec::new(),
            state: StateSlot::NONE,
            local,
        })
    }

    /// Our end of it; `None`: a Unix socket.
    pub(in crate::control) fn local(&self) -> Option<SocketAddr> {
        self.local
    }

    /// Logs in. Returns why the server may be given only the commands that all servers know; `None`: it may
    /// be given any.
    ///
    /// # Errors
    /// The connection breaks, or the server refuses the login.
    pub(in crate::control) async fn log_in(&mut self) -> io::Result<Option<String>> {
        self.log_in_as(b"", &LoginCache::default()).await
    }

    /// The same with the login of a client, in the codec's words (empty: the pool's own). What the server says to
    /// it is noted in `logins`.
    ///
    /// # Errors
    /// The connection breaks, or the server refuses the login.
    pub(in crate::control) async fn log_in_as(
        &mut self,
        words: &[u8],
        logins: &LoginCache,
    ) -> io::Result<Option<String>> {
        if self.transform.is_some() {
            // The side that begins the transform's own conversation does so now.
            self.write(&[]).await?;
            self.shake_hands().await?;
        }
        let own = self.member.login.clone();
        let health = Arc::clone(&self.member.health);
        let schema_changes = self.member.pool.schema_changes.clone();
        let (count, reached) = (self.member.pool.count.clone(), self.member.reached.clone());
        let (noted, pool) = (self.member.noted.clone(), Arc::clone(&self.member.pool.name));
        let mut with = ServerLogin {
            words,
            own: own.as_deref(),
            pool: &pool,
            logins,
            may_encrypt: self.member.may_encrypt,
            count: &count,
            reached: &reached,
            schema_changes: &schema_changes,
            prepared: health.prepared(),
            noted: &noted,
            resets: false,
            is_shared: false,
            wants_tls: false,
            said: Vec::new(),
            version: 0,
            connections: 0,
        };
        loop {
            let mut said = Vec::new();
            with.wants_tls = self.member.tls.is_some() && self.transform.is_none();
            let step = self
                .protocol
                .login(&mut self.state, &mut with, &self.heard, &mut said);
            self.member.said.tell(&with.said);
            self.member.health.quota().learn(with.connections);
            self.write(&said).await?;
            let used = match step {
                Login::More { used } | Login::Ready { used } | Login::Limited { used, .. } => used,
                Login::Upgrade { used } => {
                    let transform = self.member.next_transform(self.transform.is_some());
                    let Some(transform) = transform.filter(|_| used == self.heard.len()) else {
                        return Err(io::Error::other(NO_UPGRADE));
                    };
                    self.transform = Some(match self.transform.take() {
                        None => transform,
                        Some(outer) => Box::new(Stacked::new(outer, transform, &[])),
                    });
                    self.write(&[]).await?;
                    used
                }
                Login::Failed(text) => return Err(io::Error::other(text)),
                Login::Rejected(text) => return Err(io::Error::new(io::ErrorKind::PermissionDenied, text)),
                Login::Denied(_) | Login::Full { .. } => {
                    return Err(io::Error::other("it denies the login"));
                }
            };
            self.heard.drain(..used);
            if with.wants_tls && matches!(step, Login::Ready { .. } | Login::Limited { .. }) {
                return Err(io::Error::other(NO_TLS));
            }
            match step {
                Login::Ready { .. } => return Ok(None),
                Login::Limited { why, .. } => return Ok(Some(why)),
                // The codec knows which side is to speak.
                Login::Upgrade { .. } => {}
                _ if self.heard.len() > LONGEST => return Err(endless()),
                _ if used == 0 || self.heard.is_empty() => self.read_more().await?,
                _ => {}
            }
        }
    }

    /// Waits until the handshake of the transform is over.
    async fn shake_hands(&mut self) -> io::Result<()> {
        while let Some(transform) = &self.transform
            && transform.handshake() == Handshake::UnderWay
        {
            self.read().await?;
        }
        Ok(())
    }

    /// Sends requests.
    ///
    /// # Errors
    /// The connection breaks, or the server does not take them within the member's time-out.
    pub(in crate::control) async fn send(&mut self, requests: &[u8]) -> io::Result<()> {
        timeout(self.member.timeout, self.write(requests))
            .await
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it takes no requests"))?
    }

    /// Appends the whole reply to `command`, with all of its parts, to `reply`. Each part may take as long as
    /// the member's time-out.
    ///
    /// # Errors
    /// The connection breaks, or the server is late or answers nonsense.
    pub(in crate::control) async fn receive(
        &mut self,
        command: u16,
        reply: &mut Vec<u8>,
    ) -> io::Result<Outcome> {
        let mut parse = Parse::default();
        let mut received = 0;
        loop {
            let message = timeout(self.member.timeout, self.message(&mut parse, command))
                .await
                .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time"))??;
            let head = message.head();
            let bytes = self.heard.drain(..head.len() as usize);
            received += bytes.len();
            if !matches!(message, Message::Push(_) | Message::PushPart(_)) {
                reply.extend(bytes);
            }
            if let Message::Last(head) = message {
                return Ok(head.outcome);
            }
            if received > LARGEST {
                return Err(endless());
            }
        }
    }

    /// The next message, which then is all there.
    async fn message(&mut self, parse: &mut Parse, command: u16) -> io::Result<Message> {
        loop {
            match self.protocol.reply(&self.state, parse, command, &self.heard) {
                Parsed::Head(message) => {
                    let head = message.head();
                    if head.len() > LARGEST as u64 {
                        return Err(endless());
                    }
                    while (self.heard.len() as u64) < head.len() {
                        self.read().await?;
                    }
                    return Ok(message);
                }
                Parsed::More if self.heard.len() > LONGEST => return Err(endless()),
                Parsed::More => self.read().await?,
                Parsed::Bad(_) => return Err(io::Error::new(io::ErrorKind::InvalidData, MALFORMED)),
            }
        }
    }

    /// Reads until there is something to be understood, which the bytes of a transform's own need not be.
    async fn read_more(&mut self) -> io::Result<()> {
        let heard = self.heard.len();
        while self.heard.len() == heard {
            self.read().await?;
        }
        Ok(())
    }

    async fn write(&mut self, plain: &[u8]) -> io::Result<()> {
        let Some(transform) = &mut self.transform else {
            return self.stream.write_all(plain).await;
        };
        let mut wire = Vec::new();
        transform.seal(plain, &mut wire)?;
        self.stream.write_all(&wire).await
    }

    async fn read(&mut self) -> io::Result<()> {
        let mut received = Vec::with_capacity(CHUNK);
        if self.stream.read_buf(&mut received).await? == 0 {
            return Err(closed());
        }
        let Some(transform) = &mut self.transform else {
            self.heard.append(&mut received);
            return Ok(());
        };
        let mut wire = Vec::new();
        let opened = transform.open(&received, &mut self.heard, &mut wire);
        let has_ended = transform.has_ended() && self.heard.is_empty();
        // The alert that says what is wrong leaves first.
        self.stream.write_all(&wire).await?;
        opened?;
        match has_ended {
            true => Err(closed()),
            false => Ok(()),
        }
    }
}

/// Connects within the member's time-out. Where there is no descriptor for that, it is tried again and again:
/// whether the member is well is as unknown as before.
async fn connect<S, F>(member: &Member, open: impl Fn() -> F) -> io::Result<S>
where
    F: Future<Output = io::Result<S>>,
{
    const RETRY: Duration = Duration::from_millis(100);
    loop {
        match timeout(member.connect_timeout, open()).await {
            Ok(Err(error)) if is_shortage(&error) => sleep(RETRY).await,
            Ok(result) => return result,
            Err(_) => {
                let text = "it does not accept connections";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

/// The same address, as servers list it that listen to addresses of both kinds.
fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "it closes the connection")
}

fn endless() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "its answer has no end")
}
