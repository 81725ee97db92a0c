//! A client's attempt to log in, which its session holds until the login is decided. An attempt that is
//! dropped ends.

use std::sync::Arc;

use super::{LoginCache, attempts::Source};

/// A login that is being tried at a server.
pub struct Attempt {
    pub(super) cache: Arc<LoginCache>,
    pub(super) number: u64,
}

/// A proof that was wrong, of a client that may still say its password. Once for each login it counts.
pub struct Doubt {
    pub(super) cache: Arc<LoginCache>,
    pub(super) of: Option<(Source, u64)>,
}

impl Attempt {
    /// Its number, which the login has while it is tried: no connection is used that another one has opened.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// A server has accepted the login. `words`: the login in the codec's words, with the number that it is
    /// given. Returns the number by which it is cached.
    pub fn succeed(self, secret: &[u8], words: impl FnOnce(u64) -> Vec<u8>, unix: u64) -> u64 {
        let mut cache = self.cache.lock();
        let Some((source, pool)) = cache.attempts.get(self.number) else {
            return 0;
        };
        cache.attempts.note_right(&source);
        let (_, account) = source;
        if let Some(number) = cache.logins.renew(&account, secret, unix) {
            return number;
        }
        let number = cache.number();
        cache
            .logins
            .insert(account, number, secret, words(number).into(), pool, unix);
        number
    }

    /// The server has not accepted the login.
    pub fn fail(self, unix: u64) {
        let mut cache = self.cache.lock();
        if let Some((source, _)) = cache.attempts.get(self.number) {
            cache.attempts.note_wrong(source, unix);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.cache.lock().attempts.end(self.number);
    }
}

impl Doubt {
    /// A server decides, or the client has proved its password after all.
    pub fn clear(mut self) {
        self.of = None;
    }
}

impl Drop for Doubt {
    fn drop(&mut self) {
        if let Some((source, unix)) = self.of.take() {
            self.cache.lock().attempts.note_wrong(source, unix);
        }
    }
}
