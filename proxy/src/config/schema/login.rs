//! Logins: what the proxy says to servers, and what clients must say to the proxy.

use std::path::PathBuf;

use super::{Secret, Users};

/// Where a password is, and the password once it is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Password {
    /// Where it is.
    pub source: PasswordSource,
    /// The password; `None`: it is not read yet.
    pub secret: Option<Secret>,
}

/// Where a password is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PasswordSource {
    /// In this file, without the line end behind it.
    File(PathBuf),
    /// In the environment, by this name.
    Variable(String),
    /// In the configuration itself, as twemproxy's users have it.
    Inline,
}

/// How the proxy logs in at the servers of a pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Login {
    /// The user; `None`: the servers' default one.
    pub user: Option<String>,
    /// The password; `None`: the servers ask for none.
    pub password: Option<Password>,
    /// The number of the database.
    pub database: u32,
}

/// What the clients of a listener must say before they are served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Access {
    /// Nothing.
    #[default]
    Open,
    /// This password.
    Password(Password),
    /// What the servers ask for: a client's login is passed on to them.
    Pass,
    /// The name and the password of one of these users.
    Users(Users),
    /// What servers accept. It is asked for a password that the proxy does not know.
    Servers(PlainLogins),
}

/// What becomes of a password that is to be said where there is no TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlainLogins {
    /// It is not said.
    #[default]
    Rejected,
    /// It is encrypted with the key that the other end offers.
    Rsa,
}
