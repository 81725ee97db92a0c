//! The key, the form and the reply of an entry, one behind the other: a hit reads one run of memory.

use super::Question;
use crate::{reactor::prefetch, size_class::size_class};

/// The most bytes that are loaded before they are asked for.
const PRELOADED: usize = 512;

/// A block with what an entry is found by and its reply, unless that one is shared.
pub(super) struct Record {
    block: Vec<u8>,
    key: u32,
    form: u32,
}

impl Record {
    /// The size of the block for this number of bytes.
    pub(super) fn size(question: &Question<'_>, reply: usize) -> usize {
        size_class(question.key.len() + question.form.len() + reply)
    }

    /// A record in this block, which is empty.
    pub(super) fn new(mut block: Vec<u8>, question: &Question<'_>, reply: &[u8]) -> Self {
        let Question { key, form, .. } = *question;
        block.extend_from_slice(key);
        block.extend_from_slice(form);
        block.extend_from_slice(reply);
        Self {
            block,
            key: key.len() as u32,
            form: form.len() as u32,
        }
    }

    /// Puts another reply in the place of its own.
    pub(super) fn set_reply(&mut self, reply: &[u8]) {
        self.block.truncate(self.key as usize + self.form as usize);
        self.block.extend_from_slice(reply);
    }

    fn after_key(&self) -> (&[u8], &[u8]) {
        self.block.split_at_checked(self.key as usize).unwrap_or_default()
    }

    #[inline]
    pub(super) fn key(&self) -> &[u8] {
        self.after_key().0
    }

    /// All else of a request that decides the bytes of its reply.
    #[inline]
    pub(super) fn form(&self) -> &[u8] {
        self.after_key().1.get(..self.form as usize).unwrap_or_default()
    }

    /// The bytes of the reply.
    #[inline]
    pub(super) fn reply(&self) -> &[u8] {
        self.after_key().1.get(self.form as usize..).unwrap_or_default()
    }

    /// Begins to load the first of its bytes. The processor goes on with the others by itself.
    pub(super) fn preload(&self) {
        prefetch(
            self.block
                .get(..self.block.len().min(PRELOADED))
                .unwrap_or_default(),
        );
    }

    /// Bytes of memory.
    pub(super) fn memory(&self) -> usize {
        self.block.capacity()
    }

    /// The block, for other bytes.
    pub(super) fn into_block(self) -> Vec<u8> {
        self.block
    }
}
