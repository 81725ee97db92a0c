//! A request with the store on which it is executed.

use proxima_wire::{
    memcache::{KEY, is_value_end, key},
    message::Request,
};

use super::line::Clock;
use crate::embedded::store::{Entry, Keyspace, Store};

/// A request, its bytes, the store and the time.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) store: &'a Store,
    pub(super) clock: Clock,
    pub(super) request: &'a Request,
    /// Head and body.
    pub(super) message: &'a [u8],
    /// Bytes that the reply to a request with many keys may have.
    pub(super) largest_reply: usize,
}

impl<'a> Call<'a> {
    /// The first key as it stands.
    #[inline]
    pub(super) fn key(&self) -> &'a [u8] {
        self.request.key.of(self.message)
    }

    /// The first key as the store knows it: decoded into `scratch` where it stands in base64.
    #[inline]
    pub(super) fn decoded_key<'k>(&self, scratch: &'k mut [u8; KEY]) -> &'k [u8]
    where
        'a: 'k,
    {
        key(self.request, self.message, scratch)
    }

    /// The entry of `key` in the store.
    #[inline]
    pub(super) fn entry<'k>(&self, key: &'k [u8]) -> Entry<'a, 'k> {
        self.store.entry(Keyspace::Memcache, key, self.clock.now)
    }

    /// The words behind the first key, or behind the command if it has none.
    pub(super) fn words(&self) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
        words(self.request, self.message)
    }

    /// Bytes of the value as the head announces them.
    pub(super) fn value_length(&self) -> usize {
        usize::try_from(self.request.body.saturating_sub(2)).unwrap_or(usize::MAX)
    }

    /// The value without its line end. `None`: the line end is not where it should be.
    pub(super) fn value(&self) -> Option<&'a [u8]> {
        let body = self.message.get(self.request.head as usize..)?;
        let (value, rest) = body.split_at_checked(self.value_length())?;
        is_value_end(rest.get(..2)?).then_some(value)
    }
}

/// The words of a request behind its first key, or behind the command if it has none.
pub(super) fn words<'a>(
    request: &Request,
    message: &'a [u8],
) -> impl Iterator<Item = &'a [u8]> + Clone + use<'a> {
    let head = &message[..message.len().min(request.head as usize)];
    let line = head.strip_suffix(b"\n").unwrap_or(head);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let skip = usize::from(request.key.is_empty());
    let text = line.get(request.key.end()..).unwrap_or_default();
    text.split(|&byte| byte == b' ')
        .filter(|word| !word.is_empty())
        .skip(skip)
}
