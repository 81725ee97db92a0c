//! A connection to an endpoint or a node, in bounded time.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::TlsConnector;

use crate::tls::Connector;

/// Time for a connection.
const CONNECT: Duration = Duration::from_secs(1);
/// Time for its handshake.
const HANDSHAKE: Duration = Duration::from_secs(2);

/// The bytes of a connection, by TLS or plain.
pub(super) trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects within its time.
pub(super) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    within(CONNECT, TcpStream::connect(address)).await
}

/// Connects by TLS.
pub(super) async fn connect_by_tls(address: SocketAddr, tls: &Connector) -> io::Result<Box<dyn Stream>> {
    let stream = connect(address).await?;
    let handshake = TlsConnector::from(tls.config()).connect(tls.name(), stream);
    Ok(Box::new(within(HANDSHAKE, handshake).await?))
}

async fn within<T>(limit: Duration, done: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    let late = |_| Err(io::ErrorKind::TimedOut.into());
    timeout(limit, done).await.unwrap_or_else(late)
}
