//! Finds out whether a server that does not answer in plain text wants TLS.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::connect::connect;
use crate::tls::hello;

/// Time for the beginning of a handshake.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the server at this address answers the beginning of a handshake with TLS. Nothing is negotiated.
pub(super) async fn is_spoken(address: SocketAddr) -> bool {
    let Some(hello) = hello(address.ip()) else {
        return false;
    };
    let answer = async {
        let mut stream = connect(address).await.ok()?;
        stream.write_all(&hello).await.ok()?;
        let mut head = [0; 2];
        stream.read_exact(&mut head).await.ok()?;
        Some(head)
    };
    // A handshake or an alert, of any version.
    matches!(timeout(TIMEOUT, answer).await, Ok(Some([0x15 | 0x16, 3])))
}
