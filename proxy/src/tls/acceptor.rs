//! TLS with those who connect: to a listener, to this peer of a fleet, or to the admin port.

use std::{fmt, sync::Arc};

use rustls::{
    RootCertStore, ServerConfig, ServerConnection,
    crypto::aws_lc_rs::Ticketer,
    server::WebPkiClientVerifier,
    sign::{CertifiedKey, SingleCertAndKey},
};

use super::{
    TlsError,
    file_watch::{FileWatch, Look},
    files::{Authorities, Files},
    own::own,
    provider,
    session::begin,
    set::Set,
};
use crate::{config::schema::ServerTls, protocol::Transform};

/// Makes the transforms of connections that others have begun. All workers share it, and so a client may go
/// on with its session at any of them.
pub struct Acceptor {
    pub(super) watch: FileWatch<ServerConfig>,
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Acceptor")
    }
}

impl Acceptor {
    pub(super) fn new(tls: &ServerTls) -> Result<Self, TlsError> {
        let files = Files {
            identity: Some(tls.identity.clone()),
            authorities: tls.ca.clone().map_or(Authorities::Nobody, Authorities::File),
        };
        Ok(Self {
            watch: FileWatch::new(files, config)?,
        })
    }

    /// One that shows a certificate which the process has made for itself.
    pub(super) fn with_own() -> Result<Self, TlsError> {
        let set = Set {
            identity: Some(own()?),
            authorities: None,
            expiries: Vec::new(),
        };
        Ok(Self {
            watch: FileWatch::unchanging(config(&set)?),
        })
    }

    pub(super) fn look(&self) -> Look {
        self.watch.look()
    }

    /// The settings in use.
    pub fn config(&self) -> Arc<ServerConfig> {
        self.watch.current()
    }

    /// The transform of a connection that has just been accepted.
    pub fn accept(&self) -> Box<dyn Transform> {
        begin(ServerConnection::new(self.config()))
    }
}

fn config(set: &Set) -> Result<ServerConfig, TlsError> {
    let builder = ServerConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let builder = match &set.authorities {
        None => builder.with_no_client_auth(),
        Some(roots) => builder.with_client_cert_verifier(verifier(roots)?),
    };
    let identity = set
        .identity
        .clone()
        .ok_or(rustls::Error::NoCertificatesPresented)?;
    let mut config = builder.with_cert_resolver(resolver(identity));
    // Tickets belong to the set: who has proved something by an earlier one has to prove it again.
    config.ticketer = Ticketer::new()?;
    // Each connection brings one more, so one is enough for clients that use each once.
    config.send_tls13_tickets = 1;
    Ok(config)
}

fn resolver(identity: Arc<CertifiedKey>) -> Arc<SingleCertAndKey> {
    Arc::new(SingleCertAndKey::from(identity))
}

fn verifier(
    roots: &Arc<RootCertStore>,
) -> Result<Arc<dyn rustls::server::danger::ClientCertVerifier>, TlsError> {
    WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), provider())
        .build()
        .map_err(|error| TlsError::Library(error.to_string()))
}
