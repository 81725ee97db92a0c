//! Logins that servers have accepted, for listeners whose users the servers alone know.
//!
//! A client proves a cached login as it would one of a list. A client that cannot is tried at the server that
//! takes writes. The control thread tries every cached login anew once a minute.
//!
//! A *realm* is a set of servers with the same users: an account of one realm is another one than that with
//! the same name in another realm.
//!
//! Invariant: nothing is cached that no server has accepted. What is rejected by the server that takes writes
//! is forgotten at once, and its clients are closed.
//!
//! Invariant: clients of one host have one attempt at a time as one account. After ten wrong proofs in a row
//! they are denied for a minute, whatever they prove.
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a client or a connection logs in, and not on the way of a request"
)]

mod account;
mod attempt;
mod attempts;
mod logins;
#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    fmt,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use attempts::Attempts;
use logins::Logins;

pub use self::{
    account::Account,
    attempt::{Attempt, Doubt},
    attempts::Turn,
    logins::CachedLogin,
};

/// Schemas that are known to be there.
const MOST_SCHEMAS: usize = 4096;
/// The time after which wrong attempts are forgotten, and a login is tried anew, in µs.
const MINUTE: u64 = 60_000_000;
/// The time after which a login is tried anew that could not be tried, in µs.
const RETRY: u64 = 5_000_000;

/// The logins of the process that servers have accepted.
#[derive(Default)]
pub struct LoginCache(Mutex<Cache>);

#[derive(Default)]
struct Cache {
    logins: Logins,
    attempts: Attempts,
    /// The time until which an account's schema is believed to be there.
    schemas: HashMap<(Account, Box<[u8]>), u64>,
    /// The last number that was given.
    last: u64,
}

impl Cache {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }
}

impl LoginCache {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The logins of this account.
    pub fn of(&self, account: &Account) -> Vec<CachedLogin> {
        self.lock().logins.of(account)
    }

    /// A client of this host logs in with this one. Returns whether it is still there.
    #[must_use]
    pub fn used(&self, host: Option<IpAddr>, account: &Account, number: u64, unix: u64) -> bool {
        let mut cache = self.lock();
        cache.attempts.note_right(&(host, account.clone()));
        cache.logins.note_used(account, number, unix)
    }

    /// Are clients of this host denied as this account, because too many proofs were wrong?
    pub fn is_denied(&self, host: Option<IpAddr>, account: &Account, unix: u64) -> bool {
        let source = (host, account.clone());
        self.lock().attempts.is_denied(&source, unix)
    }

    /// A client of this host has proved another password than the one that is known. It counts as wrong if
    /// the client ends with that.
    pub fn doubt(self: &Arc<Self>, host: Option<IpAddr>, account: &Account, unix: u64) -> Doubt {
        Doubt {
            cache: Arc::clone(self),
            of: Some(((host, account.clone()), unix)),
        }
    }

    /// Are as many attempts of all hosts under way as may be?
    pub fn is_crowded(&self) -> bool {
        self.lock().attempts.is_crowded()
    }

    /// May an attempt begin to log in as this account, for a client of this host?
    pub fn turn(&self, host: Option<IpAddr>, account: &Account, unix: u64) -> Turn<()> {
        let source = (host, account.clone());
        self.lock().attempts.turn(&source, unix)
    }

    /// Begins an attempt to log in as this account, for a client of this host.
    pub fn attempt(self: &Arc<Self>, host: Option<IpAddr>, account: &Account, unix: u64) -> Turn<Attempt> {
        let mut cache = self.lock();
        let source = (host, account.clone());
        match cache.attempts.turn(&source, unix) {
            Turn::Now(()) => {}
            Turn::Later => return Turn::Later,
            Turn::Never => return Turn::Never,
        }
        let number = cache.number();
        cache.attempts.begin(number, source);
        Turn::Now(Attempt {
            cache: Arc::clone(self),
            number,
        })
    }

    /// A server of this pool has accepted the login with this number.
    pub fn accepted(&self, number: u64, pool: &Arc<str>) {
        self.lock().attempts.note_accepted(number, pool);
    }

    /// The server that takes the writes of this pool has rejected the login with this number.
    pub fn rejected(&self, number: u64, pool: &str) {
        let is_its = |login: &CachedLogin| login.pool.as_deref().is_none_or(|known| known == pool);
        self.lock().logins.forget(number, is_its);
    }

    /// A request that goes where writes go was rejected with the login with this number.
    pub fn rejected_for_writes(&self, number: u64) {
        self.lock().logins.forget(number, |_| true);
    }

    /// The logins that are to be tried now. None of them is due again before it is confirmed or postponed.
    pub fn due(&self, unix: u64) -> Vec<CachedLogin> {
        self.lock().logins.due(unix)
    }

    /// The login with this number could not be tried: it is tried again soon.
    pub fn postpone(&self, number: u64, unix: u64) {
        self.lock().logins.plan(number, unix + RETRY);
    }

    /// The login with this number was accepted anew.
    pub fn confirmed(&self, number: u64, unix: u64) {
        self.lock().logins.plan(number, unix + MINUTE);
    }

    /// Takes the numbers of the logins whose clients are to be closed.
    pub fn take_ended(&self) -> Vec<u64> {
        self.lock().logins.take_ended()
    }

    /// Has a server told within a minute that this account has this schema?
    pub fn has_schema(&self, account: &Account, schema: &[u8], unix: u64) -> bool {
        let cache = self.lock();
        let until = cache.schemas.get(&(account.clone(), schema.into()));
        until.is_some_and(|until| unix < *until)
    }

    /// A server has told that this account has this schema.
    pub fn note_schema(&self, account: &Account, schema: &[u8], unix: u64) {
        let schemas = &mut self.lock().schemas;
        if schemas.len() >= MOST_SCHEMAS {
            schemas.clear();
        }
        schemas.insert((account.clone(), schema.into()), unix + MINUTE);
    }
}

/// No user and no password is shown.
impl fmt::Debug for LoginCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginCache of {} accounts", self.lock().logins.len())
    }
}
