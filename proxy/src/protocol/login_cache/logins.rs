//! The logins that servers have accepted.

use std::{collections::HashMap, mem, sync::Arc};

use super::{Account, MINUTE};

/// The most logins that are cached.
pub(super) const MOST_LOGINS: usize = 10_000;
/// The most passwords of one user: servers may accept an old one beside a new one.
const MOST_PASSWORDS: usize = 2;

/// Logins, by account.
#[derive(Default)]
pub(super) struct Logins {
    of: HashMap<Account, Vec<CachedLogin>>,
    /// Numbers of logins whose clients are to be closed.
    ended: Vec<u64>,
}

/// A cached login.
#[derive(Clone)]
pub struct CachedLogin {
    /// Its number, which no other login of the process has had.
    pub number: u64,
    /// The password. Nothing shows it.
    pub secret: Arc<[u8]>,
    /// The login in the codec's words, with that number.
    pub words: Arc<[u8]>,
    /// The pool whose server has accepted it; `None` if the pool is not known.
    pub pool: Option<Arc<str>>,
    /// The time at which it is tried next.
    due: u64,
    /// The time at which a client last logged in with it.
    used: u64,
}

impl Logins {
    /// The number of accounts.
    pub(super) fn len(&self) -> usize {
        self.of.len()
    }

    pub(super) fn of(&self, account: &Account) -> Vec<CachedLogin> {
        self.of.get(account).cloned().unwrap_or_default()
    }

    /// A client logs in. Returns whether the login is there.
    pub(super) fn note_used(&mut self, account: &Account, number: u64, unix: u64) -> bool {
        let logins = self.of.get_mut(account).into_iter().flatten();
        let mut its = logins.filter(|login| login.number == number);
        its.next().map(|login| login.used = unix).is_some()
    }

    /// A server has accepted this password. Returns the number of the login that has it.
    pub(super) fn renew(&mut self, account: &Account, secret: &[u8], unix: u64) -> Option<u64> {
        let mut logins = self.of.get_mut(account)?.iter_mut();
        let login = logins.find(|login| *login.secret == *secret)?;
        (login.used, login.due) = (unix, unix + MINUTE);
        Some(login.number)
    }

    pub(super) fn insert(
        &mut self,
        account: Account,
        number: u64,
        secret: &[u8],
        words: Arc<[u8]>,
        pool: Option<Arc<str>>,
        unix: u64,
    ) {
        self.make_room(&account);
        let login = CachedLogin {
            number,
            secret: secret.into(),
            words,
            pool,
            due: unix + MINUTE,
            used: unix,
        };
        self.of.entry(account).or_default().push(login);
    }

    /// Makes room for one more login. The clients of the one that goes are closed, as nobody tries it any
    /// more.
    fn make_room(&mut self, account: &Account) {
        let oldest = |logins: &Vec<CachedLogin>| logins.iter().map(|login| login.used).min();
        let of_account = self.of.get(account).map_or(0, Vec::len);
        let from = if of_account >= MOST_PASSWORDS {
            account.clone()
        } else if self.of.len() >= MOST_LOGINS && of_account == 0 {
            let least = self.of.iter().min_by_key(|(_, logins)| oldest(logins));
            match least {
                Some((account, _)) => account.clone(),
                None => return,
            }
        } else {
            return;
        };
        let Some(logins) = self.of.get_mut(&from) else {
            return;
        };
        let least = (0..logins.len()).min_by_key(|&at| logins[at].used);
        if let Some(at) = least {
            self.ended.push(logins.remove(at).number);
        }
        if logins.is_empty() {
            self.of.remove(&from);
        }
    }

    /// Forgets the login with this number if it is one of these. Its clients are to be closed.
    pub(super) fn forget(&mut self, number: u64, goes: impl Fn(&CachedLogin) -> bool) {
        if number == 0 {
            return;
        }
        let mut has_ended = false;
        self.of.retain(|_, logins| {
            let before = logins.len();
            logins.retain(|login| login.number != number || !goes(login));
            has_ended |= logins.len() < before;
            !logins.is_empty()
        });
        if has_ended {
            self.ended.push(number);
        }
    }

    pub(super) fn due(&mut self, unix: u64) -> Vec<CachedLogin> {
        let all = self.of.values_mut().flatten();
        let due = all.filter(|login| login.due <= unix);
        due.map(|login| {
            login.due = u64::MAX;
            login.clone()
        })
        .collect()
    }

    pub(super) fn plan(&mut self, number: u64, due: u64) {
        let mut all = self.of.values_mut().flatten();
        if let Some(login) = all.find(|login| login.number == number) {
            login.due = due;
        }
    }

    pub(super) fn take_ended(&mut self) -> Vec<u64> {
        mem::take(&mut self.ended)
    }
}
