//! Logins that servers have accepted, for listeners whose users the servers alone know.
//!
//! A client proves a cached login as it would one of a list. A client that cannot is tried at the server that
//! takes writes. The control thread tries every cached login anew once a minute.
//!
//! A *realm* is a set of servers with the same users: an account of one realm is another one than that with the same
//! name in another realm.
//!
//! Invariant: nothing is cached that no server has accepted. What is rejected by the server that takes writes is
//! forgotten at once, and its clients are closed.
//!
//! Invariant: clients of one host have one attempt at a time as one account. After [`MOST_WRONG`] wrong proofs in a
//! row they are denied for a minute, whatever they prove.
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a client or a connection logs in, and not on the way of a request"
)]

use std::{
    collections::HashMap,
    fmt, mem,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The most logins that are cached.
const MOST_LOGINS: usize = 10_000;
/// The most passwords of one user: servers may accept an old one beside a new one.
const MOST_PASSWORDS: usize = 2;
/// Wrong attempts of one host as one user within [`MINUTE`].
const MOST_WRONG: u32 = 10;
/// Attempts of one host that are under way, whatever their users.
const MOST_AT_ONCE: usize = 16;
/// Attempts of all hosts that are under way. Their connections are not among those that clients may have.
const MOST_OF_ALL: usize = 64;
/// Hosts and users of which wrong attempts are counted.
const MOST_COUNTED: usize = 4096;
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
    logins: HashMap<Account, Vec<CachedLogin>>,
    /// Attempts that are under way, by number, with the pool whose server has accepted the login.
    attempts: HashMap<u64, (Source, Option<Arc<str>>)>,
    wrong: HashMap<Source, Wrong>,
    /// Until when an account's schema is believed to be there.
    schemas: HashMap<(Account, Box<[u8]>), u64>,
    /// Numbers of logins whose clients are to be closed.
    ended: Vec<u64>,
    /// The last number that was given.
    last: u64,
}

/// A user of a realm.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Account {
    realm: Box<[u8]>,
    user: Box<[u8]>,
}

/// A host and an account.
type Source = (Option<IpAddr>, Account);

/// A cached login.
#[derive(Clone)]
pub struct CachedLogin {
    /// Its number, which no other login of the process has had.
    pub number: u64,
    /// The password. Nothing shows it.
    pub secret: Arc<[u8]>,
    /// The login in the codec's words, with that number.
    pub words: Arc<[u8]>,
    /// The pool whose server has accepted it. `None`: it is not known.
    pub pool: Option<Arc<str>>,
    /// When it is tried next.
    due: u64,
    /// When a client has last logged in with it.
    used: u64,
}

/// Wrong attempts.
struct Wrong {
    count: u32,
    until: u64,
}

/// May a client's login be tried at a server?
pub enum Turn<T> {
    /// It may.
    Now(T),
    /// Others are tried first.
    Later,
    /// Too many proofs were wrong.
    Never,
}

/// A login that is being tried at a server.
pub struct Attempt {
    cache: Arc<LoginCache>,
    number: u64,
}

/// A proof that was wrong, of a client that may still say its password. Once for each login it counts.
pub struct Doubt {
    cache: Arc<LoginCache>,
    of: Option<(Source, u64)>,
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
            self.cache.lock().note_wrong(source, unix);
        }
    }
}

impl LoginCache {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The logins of this account.
    pub fn of(&self, account: &Account) -> Vec<CachedLogin> {
        self.lock().logins.get(account).cloned().unwrap_or_default()
    }

    /// A client of this host logs in with this one. Returns whether it is still there.
    #[must_use]
    pub fn used(&self, host: Option<IpAddr>, account: &Account, number: u64, unix: u64) -> bool {
        let mut cache = self.lock();
        cache.wrong.remove(&(host, account.clone()));
        let login = cache.find(account, number);
        login.map(|login| login.used = unix).is_some()
    }

    /// Are clients of this host denied as this account, because too many proofs were wrong?
    pub fn is_denied(&self, host: Option<IpAddr>, account: &Account, unix: u64) -> bool {
        self.lock().is_denied(&(host, account.clone()), unix)
    }

    /// A client of this host has proved another password than the one that is known. It counts as wrong if the
    /// client ends with that.
    pub fn doubt(self: &Arc<Self>, host: Option<IpAddr>, account: &Account, unix: u64) -> Doubt {
        Doubt {
            cache: Arc::clone(self),
            of: Some(((host, account.clone()), unix)),
        }
    }

    /// Are as many attempts of all hosts under way as may be?
    pub fn is_crowded(&self) -> bool {
        self.lock().attempts.len() >= MOST_OF_ALL
    }

    /// May an attempt begin to log in as this account, for a client of this host?
    pub fn turn(&self, host: Option<IpAddr>, account: &Account, unix: u64) -> Turn<()> {
        self.lock().turn(&(host, account.clone()), unix)
    }

    /// Begins an attempt to log in as this account, for a client of this host.
    pub fn attempt(self: &Arc<Self>, host: Option<IpAddr>, account: &Account, unix: u64) -> Turn<Attempt> {
        let mut cache = self.lock();
        let source = (host, account.clone());
        match cache.turn(&source, unix) {
            Turn::Now(()) => {}
            Turn::Later => return Turn::Later,
            Turn::Never => return Turn::Never,
        }
        let number = cache.number();
        cache.attempts.insert(number, (source, None));
        Turn::Now(Attempt {
            cache: Arc::clone(self),
            number,
        })
    }

    /// A server of this pool has accepted the login with this number.
    pub fn accepted(&self, number: u64, pool: &Arc<str>) {
        if let Some((_, at)) = self.lock().attempts.get_mut(&number) {
            *at = Some(Arc::clone(pool));
        }
    }

    /// The server that takes the writes of this pool has rejected the login with this number.
    pub fn rejected(&self, number: u64, pool: &str) {
        let is_its = |login: &CachedLogin| login.pool.as_deref().is_none_or(|known| known == pool);
        self.forget(number, is_its);
    }

    /// A request that goes where writes go was rejected with the login with this number.
    pub fn rejected_for_writes(&self, number: u64) {
        self.forget(number, |_| true);
    }

    fn forget(&self, number: u64, goes: impl Fn(&CachedLogin) -> bool) {
        if number == 0 {
            return;
        }
        let mut cache = self.lock();
        let mut has_ended = false;
        cache.logins.retain(|_, logins| {
            let before = logins.len();
            logins.retain(|login| login.number != number || !goes(login));
            has_ended |= logins.len() < before;
            !logins.is_empty()
        });
        if has_ended {
            cache.ended.push(number);
        }
    }

    /// The logins that are to be tried now. None of them is due again before it is confirmed or postponed.
    pub fn due(&self, unix: u64) -> Vec<CachedLogin> {
        let mut cache = self.lock();
        let all = cache.logins.values_mut().flatten();
        let due = all.filter(|login| login.due <= unix);
        due.map(|login| {
            login.due = u64::MAX;
            login.clone()
        })
        .collect()
    }

    /// The login with this number could not be tried: it is tried again soon.
    pub fn postpone(&self, number: u64, unix: u64) {
        self.plan(number, unix + RETRY);
    }

    /// The login with this number was accepted anew.
    pub fn confirmed(&self, number: u64, unix: u64) {
        self.plan(number, unix + MINUTE);
    }

    fn plan(&self, number: u64, due: u64) {
        let mut cache = self.lock();
        let mut all = cache.logins.values_mut().flatten();
        if let Some(login) = all.find(|login| login.number == number) {
            login.due = due;
        }
    }

    /// Takes the numbers of the logins whose clients are to be closed.
    pub fn take_ended(&self) -> Vec<u64> {
        mem::take(&mut self.lock().ended)
    }

    /// Has a server told within a minute that this account has this schema?
    pub fn has_schema(&self, account: &Account, schema: &[u8], unix: u64) -> bool {
        let until = self
            .lock()
            .schemas
            .get(&(account.clone(), schema.into()))
            .copied();
        until.is_some_and(|until| unix < until)
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

impl Account {
    /// This user of this realm.
    pub fn new(realm: &[u8], user: &[u8]) -> Self {
        Self {
            realm: realm.into(),
            user: user.into(),
        }
    }
}

impl Cache {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn find(&mut self, account: &Account, number: u64) -> Option<&mut CachedLogin> {
        let mut logins = self.logins.get_mut(account)?.iter_mut();
        logins.find(|login| login.number == number)
    }

    fn is_denied(&self, source: &Source, unix: u64) -> bool {
        let wrong = self.wrong.get(source);
        wrong.is_some_and(|wrong| wrong.count >= MOST_WRONG && unix < wrong.until)
    }

    fn turn(&self, source: &Source, unix: u64) -> Turn<()> {
        if self.is_denied(source, unix) {
            return Turn::Never;
        }
        let of_host = self.attempts.values().filter(|((by, _), _)| *by == source.0);
        let is_full = self.attempts.len() >= MOST_OF_ALL || of_host.clone().count() >= MOST_AT_ONCE;
        match is_full || of_host.clone().any(|(by, _)| by == source) {
            true => Turn::Later,
            false => Turn::Now(()),
        }
    }

    fn note_wrong(&mut self, source: Source, unix: u64) {
        if self.wrong.len() >= MOST_COUNTED {
            self.wrong.retain(|_, wrong| unix < wrong.until);
        }
        if self.wrong.len() >= MOST_COUNTED {
            // The counts that forget the least go.
            let least = self.wrong.iter().min_by_key(|(_, wrong)| wrong.count);
            if let Some(least) = least.map(|(source, _)| source.clone()) {
                self.wrong.remove(&least);
            }
        }
        let until = unix + MINUTE;
        let wrong = self.wrong.entry(source).or_insert(Wrong { count: 0, until });
        if unix >= wrong.until {
            *wrong = Wrong { count: 0, until };
        }
        wrong.count += 1;
    }

    /// Makes room for one more login. The clients of the one that goes are closed, as nobody tries it any more.
    fn make_room(&mut self, account: &Account) {
        let oldest = |logins: &Vec<CachedLogin>| logins.iter().map(|login| login.used).min();
        let of_account = self.logins.get(account).map_or(0, Vec::len);
        let from = if of_account >= MOST_PASSWORDS {
            account.clone()
        } else if self.logins.len() >= MOST_LOGINS && of_account == 0 {
            let least = self.logins.iter().min_by_key(|(_, logins)| oldest(logins));
            match least {
                Some((account, _)) => account.clone(),
                None => return,
            }
        } else {
            return;
        };
        let Some(logins) = self.logins.get_mut(&from) else {
            return;
        };
        let least = (0..logins.len()).min_by_key(|&at| logins[at].used);
        if let Some(at) = least {
            self.ended.push(logins.remove(at).number);
        }
        if logins.is_empty() {
            self.logins.remove(&from);
        }
    }
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
        let Some((source, pool)) = cache.attempts.get(&self.number).cloned() else {
            return 0;
        };
        cache.wrong.remove(&source);
        let (_, account) = source;
        let known = cache.logins.get_mut(&account);
        let known = known.and_then(|logins| logins.iter_mut().find(|login| *login.secret == *secret));
        if let Some(login) = known {
            (login.used, login.due) = (unix, unix + MINUTE);
            return login.number;
        }
        cache.make_room(&account);
        let number = cache.number();
        let login = CachedLogin {
            number,
            secret: secret.into(),
            words: words(number).into(),
            pool,
            due: unix + MINUTE,
            used: unix,
        };
        cache.logins.entry(account).or_default().push(login);
        number
    }

    /// The server has not accepted the login.
    pub fn fail(self, unix: u64) {
        let mut cache = self.cache.lock();
        if let Some((source, _)) = cache.attempts.get(&self.number).cloned() {
            cache.note_wrong(source, unix);
        }
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.cache.lock().attempts.remove(&self.number);
    }
}

/// No user and no password is shown.
impl fmt::Debug for LoginCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LoginCache of {} accounts", self.lock().logins.len())
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use super::{
        Account, Attempt, LoginCache, MINUTE, MOST_AT_ONCE, MOST_COUNTED, MOST_LOGINS, MOST_OF_ALL,
        MOST_WRONG, RETRY, Turn,
    };

    const HERE: Option<IpAddr> = None;

    fn cache() -> Arc<LoginCache> {
        Arc::default()
    }

    fn of(user: &[u8]) -> Account {
        Account::new(b"here", user)
    }

    fn attempt(cache: &Arc<LoginCache>, user: &[u8], unix: u64) -> Attempt {
        match cache.attempt(HERE, &of(user), unix) {
            Turn::Now(attempt) => attempt,
            Turn::Later => panic!("it has to wait"),
            Turn::Never => panic!("too many were wrong"),
        }
    }

    fn log_in(cache: &Arc<LoginCache>, user: &[u8], secret: &[u8], unix: u64) -> u64 {
        let attempt = attempt(cache, user, unix);
        cache.accepted(attempt.number(), &"db".into());
        attempt.succeed(secret, |number| number.to_le_bytes().to_vec(), unix)
    }

    #[test]
    fn what_a_server_has_accepted_is_cached_until_its_writer_rejects_it() {
        let cache = cache();
        let number = log_in(&cache, b"ann", b"secret", 0);
        let [login] = &cache.of(&of(b"ann"))[..] else {
            panic!("one login")
        };
        assert_eq!((login.number, &*login.secret), (number, &b"secret"[..]));
        assert_eq!(*login.words, number.to_le_bytes());
        assert_eq!(log_in(&cache, b"ann", b"secret", 0), number, "it is the same");
        assert!(cache.of(&of(b"bob")).is_empty());
        cache.rejected(number, "another pool");
        assert_eq!(cache.of(&of(b"ann")).len(), 1);
        cache.rejected(number, "db");
        assert!(cache.of(&of(b"ann")).is_empty());
        assert_eq!((cache.take_ended(), cache.take_ended()), (vec![number], vec![]));
        cache.rejected(number, "db");
        assert!(cache.take_ended().is_empty(), "it has ended already");
    }

    #[test]
    fn a_login_is_tried_anew_once_a_minute_and_soon_again_if_it_could_not_be() {
        let cache = cache();
        let number = log_in(&cache, b"ann", b"secret", 0);
        let due = |unix| {
            cache
                .due(unix)
                .iter()
                .map(|login| login.number)
                .collect::<Vec<_>>()
        };
        assert!(due(MINUTE - 1).is_empty());
        assert_eq!(due(MINUTE), [number]);
        assert!(due(60 * MINUTE).is_empty(), "it is being tried");
        cache.postpone(number, MINUTE);
        assert!(due(MINUTE + RETRY - 1).is_empty());
        assert_eq!(due(MINUTE + RETRY), [number]);
        cache.confirmed(number, MINUTE + RETRY);
        assert!(due(2 * MINUTE).is_empty());
    }

    #[test]
    fn a_user_may_have_two_passwords_and_no_third_one() {
        let cache = cache();
        let [first, second, third] =
            [b"a", b"b", b"c"].map(|secret| log_in(&cache, b"ann", secret, u64::from(secret[0])));
        let numbers: Vec<_> = cache.of(&of(b"ann")).iter().map(|login| login.number).collect();
        assert_eq!((numbers, cache.take_ended()), (vec![second, third], vec![first]));
    }

    #[test]
    fn one_attempt_of_a_host_as_a_user_is_under_way() {
        let cache = cache();
        let first = attempt(&cache, b"ann", 0);
        assert!(matches!(cache.attempt(HERE, &of(b"ann"), 0), Turn::Later));
        let there = Some([10, 0, 0, 1].into());
        assert!(matches!(cache.attempt(there, &of(b"ann"), 0), Turn::Now(_)));
        drop(first);
        let many: Vec<_> = (0..MOST_AT_ONCE as u8)
            .map(|user| attempt(&cache, &[user], 0))
            .collect();
        assert!(matches!(cache.attempt(HERE, &of(b"one more"), 0), Turn::Later));
        drop(many);
        assert!(cache.lock().attempts.is_empty() && !cache.is_crowded());
        let all: Vec<_> = (0..MOST_OF_ALL as u8)
            .map(|host| cache.attempt(Some([10, 0, 0, host].into()), &of(b"ann"), 0))
            .collect();
        assert!(all.iter().all(|turn| matches!(turn, Turn::Now(_))) && cache.is_crowded());
        assert!(matches!(cache.attempt(HERE, &of(b"ann"), 0), Turn::Later));
    }

    #[test]
    fn wrong_attempts_are_limited_and_forgotten_after_a_minute() {
        let cache = cache();
        for _ in 0..MOST_WRONG - 1 {
            attempt(&cache, b"ann", 0).fail(0);
        }
        drop(attempt(&cache, b"ann", 0));
        attempt(&cache, b"ann", 0).fail(1);
        assert!(matches!(
            cache.attempt(HERE, &of(b"ann"), MINUTE - 1),
            Turn::Never
        ));
        assert!(matches!(cache.attempt(HERE, &of(b"bob"), 1), Turn::Now(_)));
        attempt(&cache, b"ann", MINUTE).fail(MINUTE);
        assert!(matches!(cache.attempt(HERE, &of(b"ann"), MINUTE), Turn::Now(_)));
        let number = log_in(&cache, b"ann", b"right", MINUTE);
        assert!(cache.lock().wrong.is_empty(), "a right one clears them");
        for _ in 0..MOST_WRONG {
            assert!(!cache.is_denied(HERE, &of(b"ann"), MINUTE));
            cache.doubt(HERE, &of(b"ann"), MINUTE).clear();
            drop(cache.doubt(HERE, &of(b"ann"), MINUTE));
        }
        assert!(cache.is_denied(HERE, &of(b"ann"), MINUTE) && !cache.is_denied(HERE, &of(b"bob"), MINUTE));
        assert!(cache.used(HERE, &of(b"ann"), number, MINUTE));
        assert!(
            !cache.is_denied(HERE, &of(b"ann"), MINUTE),
            "a right proof clears them, too"
        );
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache = cache();
        for user in 0..MOST_LOGINS as u64 + 3 {
            log_in(&cache, &user.to_le_bytes(), b"secret", user);
        }
        assert_eq!(cache.lock().logins.len(), MOST_LOGINS);
        assert!(
            cache.of(&of(&0u64.to_le_bytes())).is_empty(),
            "the oldest one has gone"
        );
        assert_eq!(cache.take_ended().len(), 3);
        for user in 0..2 * MOST_COUNTED as u64 {
            attempt(&cache, &user.to_le_bytes(), 0).fail(0);
        }
        assert_eq!(cache.lock().wrong.len(), MOST_COUNTED);
        for schema in 0..10_000u64 {
            cache.note_schema(&of(b"ann"), &schema.to_le_bytes(), 0);
        }
        assert!(cache.lock().schemas.len() <= 4096);
        assert!(cache.has_schema(&of(b"ann"), &9999u64.to_le_bytes(), MINUTE - 1));
        assert!(!cache.has_schema(&of(b"ann"), &9999u64.to_le_bytes(), MINUTE));
    }

    #[test]
    fn users_of_two_realms_are_two() {
        let cache = cache();
        let number = log_in(&cache, b"ann", b"secret", 0);
        let there = Account::new(b"there", b"ann");
        assert!(cache.of(&there).is_empty());
        cache.note_schema(&there, b"shop", 0);
        assert!(!cache.has_schema(&of(b"ann"), b"shop", 0));
        let Turn::Now(attempt) = cache.attempt(HERE, &there, 0) else {
            panic!("its turn")
        };
        let other = attempt.succeed(b"secret", |_| Vec::new(), 0);
        assert_ne!(other, number, "the same password is another login");
        cache.rejected_for_writes(other);
        assert!(cache.of(&there).is_empty() && cache.of(&of(b"ann")).len() == 1);
    }

    #[test]
    fn no_password_is_shown() {
        let cache = cache();
        log_in(&cache, b"ann", b"secret", 0);
        assert_eq!(format!("{cache:?}"), "LoginCache of 1 accounts");
    }
}
