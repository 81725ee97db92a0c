//! Access: `AUTH`, the login in `HELLO`, and `SELECT`.
//!
//! A listener may have a password of its own. Otherwise, with `auth: pass`, the servers decide: what changes
//! the login is sent on a connection of the client's own, and if the server agrees the client's requests take
//! lanes with that login from then on.
//!
//! Until then a client has no login. A server takes little from such a client, and closes the connection for
//! more: longer requests are answered here, because all clients without a login share the connection.

use proxima_wire::{
    message::Request,
    resp::{self, Args, Command, TRANSACTION, integer, replies},
};

use super::{
    append_error,
    identity::{Identity, User},
    state::{self, LOCKED, SETTLING, clear, is, set},
    twemproxy::not_logged_in,
};
use crate::protocol::{Access, Plan, ReplyStyle, Retention, Session};

/// A login is at most this long, in bytes: a worker keeps some hundred of them.
const LONGEST: usize = 16 * 1024;
/// A server has so many databases by default.
const DATABASES: i64 = 16;
const NO_LOGIN: &str = "NOAUTH Authentication required.";
const NO_LOGIN_IN_HELLO: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> \
     option can be used to authenticate the client and select the RESP protocol version at the same time";
const WRONG: &str = "WRONGPASS invalid username-password pair or user is disabled.";
const NO_PASSWORD: &str = "ERR AUTH <password> called without any password configured for the default user. Are you sure \
                           your configuration is correct?";
const KEPT: &str =
    "ERR the login and the database cannot change while the server keeps something for the client";
pub(super) const SYNTAX: &[u8] = b"-ERR syntax error\r\n";
const OK: &[u8] = b"+OK\r\n";

/// The most words of a command that servers take without a login, and the most bytes of a word.
const WORDS_OF_NOBODY: u32 = 10;
const WORD_OF_NOBODY: usize = 16 * 1024;
const TOO_MANY_WORDS: &[u8] = b"-ERR Protocol error: unauthenticated multibulk length\r\n";
const TOO_LONG_WORD: &[u8] = b"-ERR Protocol error: unauthenticated bulk length\r\n";

/// The words of `AUTH`, also within `HELLO`: the user, empty for the default one, and the password.
pub(super) type UserAndPassword<'a> = (&'a [u8], &'a [u8]);

/// Begins a session, or begins it anew.
pub(super) fn begin(session: &mut Session) {
    match session.access {
        Access::Open => {}
        Access::Accounts(_) => set(session, LOCKED),
        Access::Pass => {
            let user = User::Nobody;
            session.login = Identity {
                user,
                ..Identity::default()
            }
            .encode();
        }
    }
}

/// Plans a request of a client that has not said the listener's password; `None` if the request may say it.
pub(super) fn reject(request: &Request, reply_style: ReplyStyle, out: &mut Vec<u8>) -> Option<Plan> {
    let name = Command::of(request.command).map_or("", |command| command.name);
    if matches!(name, "auth" | "hello" | "quit" | "reset") {
        return None;
    }
    let text = not_logged_in(reply_style, NO_LOGIN);
    (0..replies(request.command)).for_each(|_| append_error(text, out));
    Some(Plan::Answer)
}

/// The words with which a server closes a connection without a login for this request; `None` if the server
/// answers it.
pub(super) fn exceeds(request: &Request, message: &[u8]) -> Option<&'static [u8]> {
    let is_streamed = (message.len() as u64) < request.len();
    if request.command < TRANSACTION {
        return too_much(message).or(is_streamed.then_some(TOO_LONG_WORD));
    }
    resp::commands(message).find_map(|(_, command)| too_much(command))
}

fn too_much(command: &[u8]) -> Option<&'static [u8]> {
    let mut words = Args::of(command);
    if words.left() > WORDS_OF_NOBODY {
        return Some(TOO_MANY_WORDS);
    }
    words
        .any(|word| word.len as usize > WORD_OF_NOBODY)
        .then_some(TOO_LONG_WORD)
}

/// Checks what a client has said where the servers are not asked. Returns whether it is good; otherwise the
/// error is appended.
fn check(session: &mut Session, (user, password): UserAndPassword<'_>, out: &mut Vec<u8>) -> bool {
    let is_default = matches!(user, b"" | b"default");
    let is_good = match session.access {
        // Servers take any password from a user that has none.
        Access::Open => is_default,
        Access::Accounts(_) => is_default && session.access.admits(b"default", password),
        Access::Pass => false,
    };
    match is_good {
        true => clear(session, LOCKED),
        false => append_error(WRONG, out),
    }
    is_good
}

/// Answers `AUTH`.
pub(super) fn auth(session: &mut Session, message: &[u8], out: &mut Vec<u8>) -> Plan {
    let mut args = Args::of(message);
    let count = args.left();
    args.next();
    let (first, second) = (args.text().unwrap_or_default(), args.text());
    let said = second.map_or((&b""[..], first), |password| (first, password));
    match session.access {
        _ if count > 3 => out.extend_from_slice(SYNTAX),
        Access::Pass => return ask(session, Identity::named(session, said), out),
        Access::Open if count == 2 => append_error(NO_PASSWORD, out),
        Access::Open | Access::Accounts(_) => {
            if check(session, said, out) {
                out.extend_from_slice(OK);
            }
        }
    }
    Plan::Answer
}

/// Plans a `HELLO` that asks for this version of the protocol and, perhaps, for a login. `None`: the proxy
/// answers it.
pub(super) fn hello(
    session: &mut Session,
    form: u16,
    said: Option<UserAndPassword<'_>>,
    out: &mut Vec<u8>,
) -> Option<Plan> {
    let identity = Identity {
        form,
        ..said.map_or_else(|| Identity::of(session), |said| Identity::named(session, said))
    };
    let changes = said.is_some() || form != session.form || Identity::of(session).user == User::Nobody;
    if let Access::Pass = session.access
        && (changes || !is_kept(session))
    {
        return Some(ask(session, identity, out));
    }
    if identity.encode() != session.login && is_kept(session) {
        append_error(KEPT, out);
        return Some(Plan::Answer);
    }
    if identity.encode() != session.login && !session.is_idle {
        return Some(Plan::Later);
    }
    match said {
        Some(said) if !check(session, said, out) => return Some(Plan::Answer),
        None if is(session, LOCKED) => {
            append_error(NO_LOGIN_IN_HELLO, out);
            return Some(Plan::Answer);
        }
        _ => {}
    }
    session.form = form;
    session.login = Identity {
        form,
        ..Identity::of(session)
    }
    .encode();
    None
}

/// Answers `SELECT`.
pub(super) fn select(session: &mut Session, number: &[u8], out: &mut Vec<u8>) -> Plan {
    let identity = Identity::of(session);
    let own = i64::from(session.reach.database);
    match integer(number) {
        None => append_error("ERR value is not an integer or out of range", out),
        Some(number) if number == own && identity.database.is_none() => out.extend_from_slice(OK),
        Some(number) if is_kept(session) && identity.database.map(i64::from) == Some(number) => {
            out.extend_from_slice(OK);
        }
        Some(number) if number == own => {
            return ask(
                session,
                Identity {
                    database: None,
                    ..identity
                },
                out,
            );
        }
        Some(number @ 0..=0xffff) if session.reach.is_one => {
            let database = Some(number as u32);
            return ask(session, Identity { database, ..identity }, out);
        }
        Some(0..DATABASES) => append_error(
            "ERR the proxy serves one database of several servers: give this one a pool of its own",
            out,
        ),
        Some(_) => append_error("ERR DB index is out of range", out),
    }
    Plan::Answer
}

/// Does a server keep something for the client, on a connection with its present login?
fn is_kept(session: &Session) -> bool {
    session.retention != Retention::Clean || session.has_subscriptions
}

/// Asks the server whether the client may have this login.
fn ask(session: &mut Session, identity: Identity, out: &mut Vec<u8>) -> Plan {
    if is_kept(session) {
        append_error(KEPT, out);
        return Plan::Answer;
    }
    if !session.is_idle {
        return Plan::Later;
    }
    let words = identity.encode();
    if words.len() > LONGEST {
        append_error(WRONG, out);
        return Plan::Answer;
    }
    state::set_pending(session, words);
    session.retention = Retention::Kept;
    set(session, SETTLING);
    Plan::Dedicated
}

/// Notes whether the server has agreed to the login that it was asked for. Its connection now has that login.
pub(super) fn answered(session: &mut Session, is_error: bool) {
    let Some(words) = state::take_pending(session) else {
        return;
    };
    session.retention = Retention::Spoilt;
    if !is_error {
        let (before, now) = (Identity::of(session), Identity::decode(&words));
        let database = now.database;
        // A lane says more at its login than AUTH says, but nothing more than SELECT.
        if (Identity { database, ..before }) == now {
            session.retention = Retention::Moved;
        }
        session.form = now.form;
        session.login = words;
    }
}

impl Identity {
    /// The same client with the user that it has named.
    fn named(session: &Session, (user, password): UserAndPassword<'_>) -> Self {
        let user = match session.access {
            Access::Pass => User::Named {
                user: user.to_vec(),
                password: password.to_vec(),
            },
            Access::Open | Access::Accounts(_) => User::Pool,
        };
        Self {
            user,
            ..Self::of(session)
        }
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::{message::Parsed, resp::append_number};

    use super::{super::Redis, TOO_LONG_WORD, TOO_MANY_WORDS, exceeds};
    use crate::{protocol::Requests as _, protocols::redis::append_bulk};

    fn command(words: &[&str]) -> Vec<u8> {
        let mut message = Vec::new();
        append_number(b'*', words.len() as i64, &mut message);
        words
            .iter()
            .for_each(|word| append_bulk(word.as_bytes(), &mut message));
        message
    }

    #[test]
    fn requests_that_servers_reject_without_a_login_are_known() {
        let (longest, longer) = ("v".repeat(16_384), "v".repeat(16_385));
        let transaction = |inner: &[&str]| [command(&["MULTI"]), command(inner), command(&["EXEC"])].concat();
        let ten = ["MGET", "1", "2", "3", "4", "5", "6", "7", "8", "9"];
        let eleven = [&ten[..], &["10"]].concat();
        for (message, expected) in [
            (command(&ten), None),
            (command(&eleven), Some(TOO_MANY_WORDS)),
            (command(&["SET", "k", &longest]), None),
            (command(&["SET", "k", &longer]), Some(TOO_LONG_WORD)),
            (command(&["GET", &longer]), Some(TOO_LONG_WORD)),
            (transaction(&ten), None),
            (transaction(&eleven), Some(TOO_MANY_WORDS)),
            (
                b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n".to_vec(),
                Some(TOO_LONG_WORD),
            ),
        ] {
            let Parsed::Head(request) = Redis::PLAIN.head(&message) else {
                panic!("{}", message.escape_ascii());
            };
            assert_eq!(
                exceeds(&request, &message),
                expected,
                "{}",
                message.escape_ascii()
            );
        }
    }
}
