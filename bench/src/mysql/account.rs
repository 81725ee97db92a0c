//! The account that the connections of a run use, at proxies and at servers.

/// The user.
pub(crate) const USER: &str = "app";
/// The user's password.
pub(crate) const PASSWORD: &str = "secret";
/// The database, which must be there. Its name is part of the replies that are compared.
pub(crate) const SCHEMA: &str = "proxima_bench";
