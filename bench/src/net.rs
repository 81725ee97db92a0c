//! Looks up names and makes connections, many at a time.

use std::{
    net::{SocketAddr, TcpStream, ToSocketAddrs},
    thread,
    time::Duration,
};

use anyhow::{Context, Result};

/// Connections opened in a row before the other side gets time to accept them: every listen queue has room
/// for as many, and one that overflows costs a second.
const AT_ONCE: usize = 64;

/// No handshake on one machine takes as long.
const STUCK: Duration = Duration::from_secs(5);

/// Connects to each of `addresses`, without delay for small writes.
pub(crate) fn connect_many(addresses: &[SocketAddr]) -> Result<Vec<TcpStream>> {
    let mut streams = Vec::with_capacity(addresses.len());
    for (number, address) in addresses.iter().enumerate() {
        if number % AT_ONCE == AT_ONCE - 1 {
            thread::sleep(Duration::from_millis(1));
        }
        let place = || format!("connection {} of {}", number + 1, addresses.len());
        streams.push(connect(*address).with_context(place)?);
    }
    Ok(streams)
}

/// Connects, without delay for small writes.
pub(crate) fn connect(address: SocketAddr) -> Result<TcpStream> {
    let stream = TcpStream::connect_timeout(&address, STUCK);
    let stream = stream.with_context(|| format!("cannot connect to {address}"))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Waits until there is something to read, or the end, over a connection that does not block. Its time-out of
/// reads holds.
pub(crate) fn wait_for_words(socket: &TcpStream) -> Result<()> {
    socket.set_nonblocking(false)?;
    socket.peek(&mut [0]).context("the other side says nothing")?;
    socket.set_nonblocking(true)?;
    Ok(())
}

/// The first address of `HOST:PORT`, for command lines.
pub(crate) fn look_up(text: &str) -> Result<SocketAddr> {
    let mut found = text
        .to_socket_addrs()
        .with_context(|| format!("not HOST:PORT of a server: '{text}'"))?;
    found.next().with_context(|| format!("'{text}' has no address"))
}
