//! Logins that servers have accepted, for listeners whose users the servers alone know.
//!
//! A client proves a cached login as it would one of a list. Whoever cannot is tried at the server that takes
//! writes. The control thread tries every cached login anew once a minute.
//!
//! Invariant: nothing is cached that no server has accepted. What is rejected by the server that takes writes is
//! forgotten at once, and its clients are closed.
//!
//! Invariant: clients of one host have one attempt at a time as one user, and after [`MOST_WRONG`] wrong ones none
//! for a minute.
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
    /// By user.
    logins: HashMap<Box<[u8]>, Vec<CachedLogin>>,
    /// Attempts that are under way, by number, with the pool whose server has accepted the login.
    attempts: HashMap<u64, (Source, Option<Arc<str>>)>,
    wrong: HashMap<Source, Wrong>,
    /// Until when a user's schema is believed to be there.
    schemas: HashMap<UserSchema, u64>,
    /// Numbers of logins whose clients are to be closed.
    ended: Vec<u64>,
    /// The last number that was given.
    last: u64,
}

/// A user and a schema.
type UserSchema = (Box<[u8]>, Box<[u8]>);

/// A host and a user.
type Source = (Option<IpAddr>, Box<[u8]>);

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
pub enum Turn {
    /// Yes.
    Now(Attempt),
    /// Others of its host are tried first.
    Later,
    /// Too many were wrong.
    Never,
}

/// A login that is being tried at a server.
pub struct Attempt {
    cache: Arc<LoginCache>,
    number: u64,
}

impl LoginCache {
    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number that no login has had.
    pub fn number(&self) -> u64 {
        self.lock().number()
    }

    /// The logins of this user.
    pub fn of(&self, user: &[u8]) -> Vec<CachedLogin> {
        self.lock().logins.get(user).cloned().unwrap_or_default()
    }

    /// A client logs in with this one. Returns whether it is still there.
    #[must_use]
    pub fn used(&self, user: &[u8], number: u64, unix: u64) -> bool {
        let mut cache = self.lock();
        let login = cache.find(user, number);
        login.map(|login| login.used = unix).is_some()
    }

    /// Begins an attempt to log in as this user, for a client of this host.
    pub fn attempt(self: &Arc<Self>, host: Option<IpAddr>, user: &[u8], unix: u64) -> Turn {
        let mut cache = self.lock();
        let source = (host, Box::from(user));
        if let Some(wrong) = cache.wrong.get(&source)
            && wrong.count >= MOST_WRONG
            && unix < wrong.until
        {
            return Turn::Never;
        }
        let of_host = cache.attempts.values().filter(|((by, _), _)| *by == host);
        if of_host.clone().count() >= MOST_AT_ONCE || of_host.clone().any(|(by, _)| *by == source) {
            return Turn::Later;
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
        if number == 0 {
            return;
        }
        let mut cache = self.lock();
        let is_it = |login: &CachedLogin| {
            login.number == number && login.pool.as_deref().is_none_or(|known| known == pool)
        };
        let mut has_ended = false;
        cache.logins.retain(|_, logins| {
            let before = logins.len();
            logins.retain(|login| !is_it(login));
            has_ended |= logins.len() < before;
            !logins.is_empty()
        });
        if has_ended {
            cache.ended.push(number);
        }
    }

    /// The logins that are to be tried now.
    pub fn due(&self, unix: u64) -> Vec<CachedLogin> {
        let mut cache = self.lock();
        let all = cache.logins.values_mut().flatten();
        let due = all.filter(|login| login.due <= unix);
        due.map(|login| {
            login.due = unix + RETRY;
            login.clone()
        })
        .collect()
    }

    /// The login with this number was accepted anew.
    pub fn confirmed(&self, number: u64, unix: u64) {
        let mut cache = self.lock();
        let mut all = cache.logins.values_mut().flatten();
        if let Some(login) = all.find(|login| login.number == number) {
            login.due = unix + MINUTE;
        }
    }

    /// Takes the numbers of the logins whose clients are to be closed.
    pub fn take_ended(&self) -> Vec<u64> {
        mem::take(&mut self.lock().ended)
    }

    /// Has a server told within a minute that this user has this schema?
    pub fn has_schema(&self, user: &[u8], schema: &[u8], unix: u64) -> bool {
        let until = self.lock().schemas.get(&(user.into(), schema.into())).copied();
        until.is_some_and(|until| unix < until)
    }

    /// A server has told that this user has this schema.
    pub fn note_schema(&self, user: &[u8], schema: &[u8], unix: u64) {
        let schemas = &mut self.lock().schemas;
        if schemas.len() >= MOST_SCHEMAS {
            schemas.clear();
        }
        schemas.insert((user.into(), schema.into()), unix + MINUTE);
    }
}

impl Cache {
    fn number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn find(&mut self, user: &[u8], number: u64) -> Option<&mut CachedLogin> {
        let mut logins = self.logins.get_mut(user)?.iter_mut();
        logins.find(|login| login.number == number)
    }

    /// Makes room for one more login. The clients of the one that goes are closed, as nobody tries it any more.
    fn make_room(&mut self, user: &[u8]) {
        let oldest = |logins: &Vec<CachedLogin>| logins.iter().map(|login| login.used).min();
        let of_user = self.logins.get(user).map_or(0, Vec::len);
        let from: Box<[u8]> = if of_user >= MOST_PASSWORDS {
            user.into()
        } else if self.logins.len() >= MOST_LOGINS && of_user == 0 {
            let least = self.logins.iter().min_by_key(|(_, logins)| oldest(logins));
            match least {
                Some((user, _)) => user.clone(),
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
        let Some(((host, user), pool)) = cache.attempts.get(&self.number).cloned() else {
            return 0;
        };
        cache.wrong.remove(&(host, user.clone()));
        let known = cache.logins.get_mut(&user);
        let known = known.and_then(|logins| logins.iter_mut().find(|login| *login.secret == *secret));
        if let Some(login) = known {
            (login.used, login.due) = (unix, unix + MINUTE);
            return login.number;
        }
        cache.make_room(&user);
        let number = cache.number();
        let login = CachedLogin {
            number,
            secret: secret.into(),
            words: words(number).into(),
            pool,
            due: unix + MINUTE,
            used: unix,
        };
        cache.logins.entry(user).or_default().push(login);
        number
    }

    /// The server has rejected the login: the password is wrong, or there is no such user.
    pub fn fail(self, unix: u64) {
        let mut cache = self.cache.lock();
        let Some((source, _)) = cache.attempts.get(&self.number).cloned() else {
            return;
        };
        if cache.wrong.len() >= MOST_COUNTED {
            cache.wrong.retain(|_, wrong| unix < wrong.until);
        }
        if cache.wrong.len() >= MOST_COUNTED {
            // Whoever brings that many users has waited for as many servers' answers.
            let least = cache.wrong.iter().min_by_key(|(_, wrong)| wrong.count);
            if let Some(least) = least.map(|(source, _)| source.clone()) {
                cache.wrong.remove(&least);
            }
        }
        let until = unix + MINUTE;
        let wrong = cache.wrong.entry(source).or_insert(Wrong { count: 0, until });
        if unix >= wrong.until {
            *wrong = Wrong { count: 0, until };
        }
        wrong.count += 1;
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
        write!(f, "LoginCache of {} users", self.lock().logins.len())
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, sync::Arc};

    use super::{
        Attempt, LoginCache, MINUTE, MOST_AT_ONCE, MOST_COUNTED, MOST_LOGINS, MOST_WRONG, RETRY, Turn,
    };

    const HERE: Option<IpAddr> = None;

    fn cache() -> Arc<LoginCache> {
        Arc::default()
    }

    fn attempt(cache: &Arc<LoginCache>, user: &[u8], unix: u64) -> Attempt {
        match cache.attempt(HERE, user, unix) {
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
        let [login] = &cache.of(b"ann")[..] else {
            panic!("one login")
        };
        assert_eq!((login.number, &*login.secret), (number, &b"secret"[..]));
        assert_eq!(*login.words, number.to_le_bytes());
        assert_eq!(log_in(&cache, b"ann", b"secret", 0), number, "it is the same");
        assert!(cache.of(b"bob").is_empty());
        cache.rejected(number, "another pool");
        assert_eq!(cache.of(b"ann").len(), 1);
        cache.rejected(number, "db");
        assert!(cache.of(b"ann").is_empty());
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
        let numbers: Vec<_> = cache.of(b"ann").iter().map(|login| login.number).collect();
        assert_eq!((numbers, cache.take_ended()), (vec![second, third], vec![first]));
    }

    #[test]
    fn one_attempt_of_a_host_as_a_user_is_under_way() {
        let cache = cache();
        let first = attempt(&cache, b"ann", 0);
        assert!(matches!(cache.attempt(HERE, b"ann", 0), Turn::Later));
        let there = Some([10, 0, 0, 1].into());
        assert!(matches!(cache.attempt(there, b"ann", 0), Turn::Now(_)));
        drop(first);
        let many: Vec<_> = (0..MOST_AT_ONCE as u8)
            .map(|user| attempt(&cache, &[user], 0))
            .collect();
        assert!(matches!(cache.attempt(HERE, b"one more", 0), Turn::Later));
        drop(many);
        assert!(cache.lock().attempts.is_empty());
    }

    #[test]
    fn wrong_attempts_are_limited_and_forgotten_after_a_minute() {
        let cache = cache();
        for _ in 0..MOST_WRONG - 1 {
            attempt(&cache, b"ann", 0).fail(0);
        }
        drop(attempt(&cache, b"ann", 0));
        attempt(&cache, b"ann", 0).fail(1);
        assert!(matches!(cache.attempt(HERE, b"ann", MINUTE - 1), Turn::Never));
        assert!(matches!(cache.attempt(HERE, b"bob", 1), Turn::Now(_)));
        attempt(&cache, b"ann", MINUTE).fail(MINUTE);
        assert!(matches!(cache.attempt(HERE, b"ann", MINUTE), Turn::Now(_)));
        log_in(&cache, b"ann", b"right", MINUTE);
        assert!(cache.lock().wrong.is_empty(), "a right one clears them");
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let cache = cache();
        for user in 0..MOST_LOGINS as u64 + 3 {
            log_in(&cache, &user.to_le_bytes(), b"secret", user);
        }
        assert_eq!(cache.lock().logins.len(), MOST_LOGINS);
        assert!(
            cache.of(&0u64.to_le_bytes()).is_empty(),
            "the oldest one has gone"
        );
        assert_eq!(cache.take_ended().len(), 3);
        for user in 0..2 * MOST_COUNTED as u64 {
            attempt(&cache, &user.to_le_bytes(), 0).fail(0);
        }
        assert_eq!(cache.lock().wrong.len(), MOST_COUNTED);
        for schema in 0..10_000u64 {
            cache.note_schema(b"ann", &schema.to_le_bytes(), 0);
        }
        assert!(cache.lock().schemas.len() <= 4096);
        assert!(cache.has_schema(b"ann", &9999u64.to_le_bytes(), MINUTE - 1));
        assert!(!cache.has_schema(b"ann", &9999u64.to_le_bytes(), MINUTE));
    }

    #[test]
    fn no_password_is_shown() {
        let cache = cache();
        log_in(&cache, b"ann", b"secret", 0);
        assert_eq!(format!("{cache:?}"), "LoginCache of 1 users");
    }
}
