//! TLS, the same for every protocol: certificates of listeners and of members, and the transform between a
//! socket and its session or lane.
//!
//! ```text
//!  files ─▶ set (all of them, or none) ─▶ file watch ─▶ acceptor of a listener ─▶ session ─▶ wire
//!                                            ▲    └─▶ connector of a member   ─▶ session ─▶ wire
//!                                  certificates look again, five times a second
//! ```
//!
//! * `files`: the files of one set, read into memory; `set`: what they say, if they fit each other; `expiry`:
//!   until when a certificate is valid
//! * `file_watch`: what was made of a set, made again when the files change; `certificates`: all of them
//! * `acceptor`, `connector`: one end each; `verifier`: what is asked of servers whose name does not matter
//! * `own`: the certificate that the process makes for itself
//! * `hello`: how a client begins; `session`: one connection; `failure`: why its handshake came to nothing
//!
//! Invariant: what is in use was made of files that were read together and fit each other. No connection
//! waits for a file, and if a file is unusable, the certificates in use stay.

mod acceptor;
mod certificates;
mod connector;
mod error;
mod expiry;
mod failure;
mod file_watch;
mod files;
mod hello;
mod own;
mod provider;
mod session;
mod set;
#[cfg(test)]
mod tests;
mod verifier;

pub(crate) use self::expiry::expiry;
pub use self::{
    acceptor::Acceptor,
    certificates::{Certificates, Validity},
    connector::Connector,
    error::TlsError,
    failure::Failure,
    hello::hello,
    provider::provider,
    session::Session,
};
