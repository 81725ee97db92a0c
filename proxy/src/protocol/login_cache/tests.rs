//! Tests of the cache of logins.

use std::{net::IpAddr, sync::Arc};

use super::{
    Account, Attempt, LoginCache, MINUTE, RETRY, Turn,
    attempts::{MOST_AT_ONCE, MOST_COUNTED, MOST_OF_ALL, MOST_WRONG},
    logins::MOST_LOGINS,
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
    assert!(cache.lock().attempts.counts().0 == 0 && !cache.is_crowded());
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
    assert!(cache.lock().attempts.counts().1 == 0, "a right one clears them");
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
    assert_eq!(cache.lock().attempts.counts().1, MOST_COUNTED);
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
