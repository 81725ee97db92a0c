//! The bytes of a reply that is to be kept.

use std::sync::Arc;

use super::SMALL;

/// A small reply is copied into the store and out to each reader, and a large one is handed out as it lies.
#[derive(Clone, Copy)]
pub enum Bytes<'a> {
    /// They are not shared yet.
    Alone(&'a [u8]),
    /// Others may have them.
    Shared(&'a Arc<[u8]>),
}

impl<'a> Bytes<'a> {
    /// The bytes to copy; those of a large reply as it lies.
    pub(super) fn split(self) -> (&'a [u8], Option<Arc<[u8]>>) {
        match self {
            Self::Alone(bytes) if bytes.len() > SMALL => (&[], Some(bytes.into())),
            Self::Alone(bytes) => (bytes, None),
            Self::Shared(bytes) if bytes.len() > SMALL => (&[], Some(Arc::clone(bytes))),
            Self::Shared(bytes) => (bytes, None),
        }
    }
}

impl<'a> From<&'a [u8]> for Bytes<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Alone(bytes)
    }
}

impl<'a> From<&'a Arc<[u8]>> for Bytes<'a> {
    fn from(bytes: &'a Arc<[u8]>) -> Self {
        Self::Shared(bytes)
    }
}
