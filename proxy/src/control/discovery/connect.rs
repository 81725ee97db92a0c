//! A connection to an endpoint or a node, in bounded time.

use std::{io, net::SocketAddr, time::Duration};

use tokio::{net::TcpStream, time::timeout};

/// Time for a connection.
const CONNECT: Duration = Duration::from_secs(1);

/// Connects within its time.
pub(super) async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let late = |_| Err(io::ErrorKind::TimedOut.into());
    let connected = timeout(CONNECT, TcpStream::connect(address)).await;
    connected.unwrap_or_else(late)
}
