//! The first message of a handshake that is not continued.

use std::{net::IpAddr, sync::Arc};

use rustls::{ClientConfig, ClientConnection, RootCertStore, pki_types::ServerName};

use super::provider;

/// The bytes with which a client begins who connects to this address.
pub fn hello(address: IpAddr) -> Option<Vec<u8>> {
    let config = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .ok()?
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    let name = ServerName::IpAddress(address.into());
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
        let hello = hello([127, 0, 0, 1].into()).unwrap();
        assert_eq!(hello[..2], [0x16, 3]);
        assert_eq!(hello[5], 1, "a ClientHello");
    }
}
