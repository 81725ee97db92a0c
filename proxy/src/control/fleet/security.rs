//! Mutual TLS among peers: a certificate of the fleet's authority makes a peer.

use std::sync::Arc;

use rustls::{ClientConfig, ServerConfig};

use crate::{
    config::schema::{ClientTls, PeerTls, ServerTls, Verify},
    tls::{Acceptor, Certificates, Connector, TlsError},
};

/// The name that every certificate of a fleet has. Peers come and go with their addresses; what proves a peer
/// is the authority that has signed for it.
pub(crate) const NAME: &str = "proxima-fleet";

/// How channels are protected.
#[derive(Default)]
pub(super) struct Security(Option<(Arc<Acceptor>, Connector)>);

impl Security {
    /// Reads the files. `None`: channels are not protected.
    ///
    /// # Errors
    /// A file cannot be read, or is not what it should be; the text names it.
    pub(super) fn open(files: Option<&PeerTls>, certificates: &Certificates) -> Result<Self, TlsError> {
        let Some(PeerTls { identity, ca }) = files else {
            return Ok(Self::default());
        };
        let acceptor = certificates.acceptor(&ServerTls {
            identity: identity.clone(),
            ca: Some(ca.clone()),
        })?;
        let client = ClientTls {
            ca: Some(ca.clone()),
            name: Some(NAME.to_owned()),
            identity: Some(identity.clone()),
            verify: Verify::Full,
        };
        let connector = certificates.connector(&client, None)?;
        Ok(Self(Some((acceptor, connector))))
    }

    /// How this end connects; `None`: without protection.
    pub(super) fn client(&self) -> Option<Arc<ClientConfig>> {
        let (_, connector) = self.0.as_ref()?;
        Some(connector.config())
    }

    /// How this end accepts; `None`: without protection.
    pub(super) fn server(&self) -> Option<Arc<ServerConfig>> {
        let (acceptor, _) = self.0.as_ref()?;
        Some(acceptor.config())
    }
}
