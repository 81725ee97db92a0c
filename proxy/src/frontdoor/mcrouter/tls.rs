//! TLS as mcrouter's options and addresses ask for it.

use super::{error::OptionError, flags::Flags};
use crate::config::schema::{ClientTls, Identity, ServerTls, Verify};

/// TLS with the clients of `--ssl-port`.
pub(super) fn with_clients(flags: &Flags) -> Result<ServerTls, OptionError> {
    let identity = identity(flags, ["server-pem-cert-path", "server-pem-key-path"]);
    let ca = flags.path("server-pem-ca-path");
    let ca = match flags.flag("ssl-require-peer-certs") {
        true => Some(ca.ok_or(OptionError::NoAuthority)?),
        false => None,
    };
    let identity = identity.ok_or(OptionError::NoCertificate)?;
    Ok(ServerTls { identity, ca })
}

/// TLS with servers whose addresses ask for it. mcrouter looks at their certificates only if it is told to, and
/// then not at the names in them.
pub(super) fn with_servers(flags: &Flags) -> ClientTls {
    let ca = flags
        .path("pem-ca-path")
        .filter(|_| flags.flag("ssl-verify-peers"));
    ClientTls {
        verify: if ca.is_some() {
            Verify::Authority
        } else {
            Verify::None
        },
        ca,
        name: None,
        identity: identity(flags, ["pem-cert-path", "pem-key-path"]),
    }
}

fn identity(flags: &Flags, [certificate, key]: [&str; 2]) -> Option<Identity> {
    Some(Identity {
        certificate: flags.path(certificate)?,
        key: flags.path(key)?,
    })
}

/// Does this word behind an address or in a pool ask for TLS? `None` if the word is not supported.
pub(super) fn is_asked_for(word: &str) -> Option<bool> {
    match word {
        "plain" => Some(false),
        // These differ in who encrypts, which the other end does not see.
        "ssl" | "fizz" | "ktls12" => Some(true),
        _ => None,
    }
}
