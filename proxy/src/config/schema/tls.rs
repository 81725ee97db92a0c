//! TLS: the files of certificates, and what the other end has to prove.

use std::path::{Path, PathBuf};

/// A certificate and its key, in PEM form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity {
    /// The certificate, with those between it and its authority.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl Identity {
    /// Makes its paths relative to this folder.
    pub fn below(&mut self, folder: &Path) {
        self.certificate = folder.join(&self.certificate);
        self.key = folder.join(&self.key);
    }
}

/// TLS with those who connect.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ServerTls {
    /// The certificate that this end shows.
    pub identity: Identity,
    /// The authority that must have signed the certificates of those who connect. `None`: they need none.
    pub ca: Option<PathBuf>,
}

impl ServerTls {
    /// Makes its paths relative to this folder.
    pub fn below(&mut self, folder: &Path) {
        self.identity.below(folder);
        self.ca = self.ca.take().map(|ca| folder.join(ca));
    }
}

/// TLS with servers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientTls {
    /// The authorities that may have signed the certificates of servers. `None`: those that this system
    /// trusts.
    pub ca: Option<PathBuf>,
    /// The name that the certificates of servers must have. `None`: the host in the address of each.
    pub name: Option<String>,
    /// The certificate that the proxy shows. `None`: none.
    pub identity: Option<Identity>,
    /// Whether a server has to prove its name.
    pub verify: Verify,
}

impl ClientTls {
    /// Makes its paths relative to this folder.
    pub fn below(&mut self, folder: &Path) {
        self.ca = self.ca.take().map(|ca| folder.join(ca));
        if let Some(identity) = &mut self.identity {
            identity.below(folder);
        }
    }
}

/// What the certificate of a server has to prove.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verify {
    /// The signature of an authority, and the server's name.
    Full,
    /// The signature of an authority, whatever the name.
    Authority,
    /// Nothing.
    None,
}
