//! Finds out whether a server that does not answer in plain text wants TLS.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, crypto::aws_lc_rs::default_provider, pki_types::ServerName,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time::timeout,
};

use super::connect::connect;

/// Time for the beginning of a handshake.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Whether the server at this address answers the beginning of a handshake with TLS. Nothing is negotiated.
pub(super) async fn is_spoken(address: SocketAddr) -> bool {
    let Some(hello) = hello(address) else {
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

/// The bytes with which a client begins.
fn hello(address: SocketAddr) -> Option<Vec<u8>> {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.ip().into());
    let mut connection = ClientConnection::new(Arc::new(config), name).ok()?;
    let mut hello = Vec::new();
    connection.write_tls(&mut hello).ok()?;
    Some(hello)
}

#[cfg(test)]
mod tests {
    use super::hello;

    #[test]
    fn client_begins_with_a_handshake() {
        let hello = hello(([127, 0, 0, 1], 1).into()).unwrap();
        assert_eq!(hello[..2], [0x16, 3]);
        assert_eq!(hello[5], 1, "a ClientHello");
    }
}
