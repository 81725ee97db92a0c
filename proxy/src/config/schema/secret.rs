//! Passwords.

use std::{fmt, sync::Arc};

/// A password. Nothing shows it.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Secret(Arc<[u8]>);

impl Secret {
    /// This password.
    pub fn new(password: &[u8]) -> Self {
        Self(password.into())
    }

    /// Its bytes.
    pub fn bytes(&self) -> &Arc<[u8]> {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}
