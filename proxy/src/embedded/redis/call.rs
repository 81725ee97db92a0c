//! A request with the store on which it is executed.

use proxima_wire::resp::{Args, Command};

use crate::embedded::store::{Entry, Keyspace, Store};

/// A request, its bytes, the store and the time.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) store: &'a Store,
    /// The number of the command.
    pub(super) command: u16,
    /// The first key.
    pub(super) key: &'a [u8],
    pub(super) message: &'a [u8],
    /// Milliseconds on the store's clock.
    pub(super) now: u64,
    /// The Unix time in milliseconds when that clock was 0.
    pub(super) begun: u64,
    /// 0: RESP2; else RESP3.
    pub(super) form: u16,
    /// Bytes that the reply to a request with many keys may have.
    pub(super) largest_reply: usize,
}

impl<'a> Call<'a> {
    /// The command's name.
    pub(super) fn name(&self) -> &'static str {
        Command::of(self.command).map_or("", |command| command.name)
    }

    /// The words behind the command's name.
    pub(super) fn words(&self) -> Args<'a> {
        let mut args = Args::of(self.message);
        args.next();
        args
    }

    /// The words behind the first key.
    pub(super) fn options(&self) -> Args<'a> {
        let mut args = self.words();
        args.next();
        args
    }

    /// The word at this position behind the command's name, 0 being the first key; empty if the request is
    /// shorter.
    pub(super) fn word(&self, at: usize) -> &'a [u8] {
        let found = self.words().nth(at);
        found.map(|word| word.of(self.message)).unwrap_or_default()
    }

    /// The entry of `key` in the store.
    #[inline]
    pub(super) fn entry<'k>(&self, key: &'k [u8]) -> Entry<'a, 'k> {
        self.store.entry(Keyspace::Redis, key, self.now)
    }
}
