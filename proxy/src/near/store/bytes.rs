//! The bytes of one kept reply.

use std::{ops::Deref, sync::Arc};

use super::{
    SMALL,
    blocks::{Block, Blocks},
};

/// The counts of an [`Arc`], beside its bytes.
const COUNTS: usize = 16;
/// mimalloc gives a larger block so many bytes of its own, and as many again: with huge pages, all of them are
/// resident.
const SLICE: usize = 64 << 10;

/// A small reply is copied to each reader, and a large one is handed out as it lies.
pub(super) enum Bytes {
    Small(Block),
    Large(Arc<[u8]>),
}

impl Bytes {
    pub(super) fn new(bytes: Arc<[u8]>, blocks: &Arc<Blocks>) -> Self {
        match bytes.len() > SMALL {
            true => Self::Large(bytes),
            false => Self::Small(blocks.copy(&bytes)),
        }
    }

    /// A large reply, as it lies.
    #[inline]
    pub(super) fn large(&self) -> Option<&Arc<[u8]>> {
        match self {
            Self::Small(_) => None,
            Self::Large(bytes) => Some(bytes),
        }
    }

    /// The bytes for somebody who keeps them.
    pub(super) fn share(&self) -> Arc<[u8]> {
        match self {
            Self::Small(bytes) => Arc::from(&**bytes),
            Self::Large(bytes) => Arc::clone(bytes),
        }
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        match self {
            Self::Small(block) => block.memory(),
            Self::Large(bytes) => (bytes.len() + COUNTS).next_multiple_of(SLICE),
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(bytes) => bytes,
        }
    }
}
