//! The bytes of one connection, with TLS or without, and its making.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use rustls::{Connection, pki_types::ServerName};
use socket2::{SockRef, Socket};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsConnector, TlsStream};

use super::{Hello, Welcome, packet};
use crate::{
    control::fleet::security::{NAME, Security},
    protocol::Transform,
    tls::Session,
};

/// A connection, with TLS or without.
pub(in crate::control::fleet) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// A connection that a worker takes over.
pub(in crate::control::fleet) struct RawLink {
    pub(in crate::control::fleet) socket: Socket,
    pub(in crate::control::fleet) transform: Option<Box<dyn Transform>>,
    /// Plain bytes that have come behind the handshake.
    pub(in crate::control::fleet) early: Vec<u8>,
}

impl Stream {
    /// Takes the connection out of the control thread's hands. `early`: bytes that were received already.
    pub(in crate::control::fleet) fn take_over(self, mut early: Vec<u8>) -> io::Result<RawLink> {
        let (socket, tls) = match self {
            Self::Plain(socket) => (socket, None),
            Self::Tls(stream) => match *stream {
                TlsStream::Client(stream) => {
                    let (socket, tls) = stream.into_inner();
                    (socket, Some(Connection::Client(tls)))
                }
                TlsStream::Server(stream) => {
                    let (socket, tls) = stream.into_inner();
                    (socket, Some(Connection::Server(tls)))
                }
            },
        };
        let transform: Option<Box<dyn Transform>> = match tls {
            None => None,
            Some(tls) => Some(Box::new(Session::take_over(tls, &mut early)?)),
        };
        let socket = Socket::from(socket.into_std()?);
        socket.set_tcp_nodelay(true)?;
        Ok(RawLink {
            socket,
            transform,
            early,
        })
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Self::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A connection whose other end the kernel has not heard of for so long, with bytes under way to it, has
/// ended. Otherwise one that was cut would be kept for minutes after the cut has healed.
const SILENT: Duration = Duration::from_secs(3);

/// Connects to a peer, and hears who it is. The result has the bytes that came behind the handshake, and the
/// version of the protocol that both ends speak.
///
/// # Errors
/// The peer is not there, has no certificate of the authority, or refuses.
pub(in crate::control::fleet) async fn connect(
    address: SocketAddr,
    security: &Security,
    hello: &Hello,
) -> io::Result<(Stream, Vec<u8>, u16)> {
    let socket = TcpStream::connect(address).await?;
    socket.set_nodelay(true)?;
    SockRef::from(&socket).set_tcp_user_timeout(Some(SILENT))?;
    let mut stream = match security.client() {
        None => Stream::Plain(socket),
        Some(config) => {
            let name = ServerName::try_from(NAME).map_err(io::Error::other)?;
            let stream = TlsConnector::from(config).connect(name, socket).await?;
            Stream::Tls(Box::new(stream.into()))
        }
    };
    stream.write_all(&packet::write(hello)?).await?;
    stream.flush().await?;
    let (welcome, early): (Welcome, _) = receive(&mut stream).await?;
    match welcome.refused {
        Some(why) => Err(io::Error::new(io::ErrorKind::PermissionDenied, why)),
        None => Ok((stream, early, welcome.version())),
    }
}

/// Receives a word of the handshake, and the bytes behind it.
pub(super) async fn receive<T: serde::de::DeserializeOwned>(stream: &mut Stream) -> io::Result<(T, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(word) = packet::take(&mut bytes, packet::HELLO)? {
            return Ok((word, bytes));
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}
