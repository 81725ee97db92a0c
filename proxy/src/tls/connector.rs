//! TLS with a server.
#![allow(
    clippy::disallowed_types,
    reason = "a worker takes the newest settings with each connection"
)]

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use rustls::{
    ClientConfig, ClientConnection,
    client::{Resumption, WebPkiServerVerifier, danger::ServerCertVerifier},
    pki_types::ServerName,
    sign::SingleCertAndKey,
};

use super::{
    TlsError,
    file_watch::FileWatch,
    files::{Authorities, Files},
    provider,
    session::begin,
    set::Set,
    verifier::Lenient,
};
use crate::{
    config::schema::{ClientTls, Verify},
    protocol::Transform,
};

/// Sessions that one server has agreed to go on with.
const SESSIONS: usize = 32;

/// The settings for all servers of a pool.
pub(super) type Settings = FileWatch<ClientConfig>;

/// Makes the transforms of connections to one server.
pub struct Connector {
    settings: Arc<Settings>,
    /// The name that is asked for, and that the server has to prove.
    name: ServerName<'static>,
    /// The settings as they were last, and the same with a memory of this server's own sessions: what one
    /// server of a name has agreed to is of no use at another.
    own: Mutex<(Arc<ClientConfig>, Arc<ClientConfig>)>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Connector({:?})", self.name)
    }
}

impl Connector {
    /// For the server of this name.
    ///
    /// # Errors
    /// No certificate can have this name.
    pub(super) fn new(settings: Arc<Settings>, name: &str) -> Result<Self, TlsError> {
        let parsed = ServerName::try_from(name).map_err(|_| TlsError::Name(name.to_owned()))?;
        let current = settings.current();
        let own = with_sessions(&current);
        Ok(Self {
            settings,
            name: parsed.to_owned(),
            own: Mutex::new((current, own)),
        })
    }

    /// Are servers asked for the same by this one and the other?
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.settings, &other.settings) && self.name == other.name
    }

    /// The settings in use.
    pub fn config(&self) -> Arc<ClientConfig> {
        let current = self.settings.current();
        let own = &mut *self.own.lock();
        if !Arc::ptr_eq(&own.0, &current) {
            *own = (Arc::clone(&current), with_sessions(&current));
        }
        Arc::clone(&own.1)
    }

    /// The name that the server has to prove.
    pub fn name(&self) -> ServerName<'static> {
        self.name.clone()
    }

    /// The transform of a connection that is being made.
    pub fn connect(&self) -> Box<dyn Transform> {
        begin(ClientConnection::new(self.config(), self.name()))
    }
}

fn with_sessions(settings: &ClientConfig) -> Arc<ClientConfig> {
    let mut own = settings.clone();
    own.resumption = Resumption::in_memory_sessions(SESSIONS);
    Arc::new(own)
}

/// The settings for servers.
///
/// # Errors
/// The files cannot be used.
pub(super) fn settings(tls: &ClientTls) -> Result<Settings, TlsError> {
    let verify = tls.verify;
    let files = Files {
        identity: tls.identity.clone(),
        authorities: match (&tls.ca, verify) {
            (Some(file), _) => Authorities::File(file.clone()),
            (None, Verify::None) => Authorities::Nobody,
            (None, Verify::Full | Verify::Authority) => Authorities::System,
        },
    };
    FileWatch::new(files, move |set| config(set, verify))
}

fn config(set: &Set, verify: Verify) -> Result<ClientConfig, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let authority = || {
        let roots = set.authorities.clone().ok_or(TlsError::NoAuthorities)?;
        WebPkiServerVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| TlsError::Library(error.to_string()))
    };
    let verifier: Arc<dyn ServerCertVerifier> = match verify {
        Verify::Full => authority()?,
        Verify::Authority => Arc::new(Lenient::of_authority(authority()?)),
        Verify::None => Arc::new(Lenient::of_anybody()),
    };
    let builder = builder.dangerous().with_custom_certificate_verifier(verifier);
    Ok(match &set.identity {
        Some(identity) => {
            builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(identity))))
        }
        None => builder.with_no_client_auth(),
    })
}
