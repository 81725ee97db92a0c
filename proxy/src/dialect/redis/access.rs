//! Access: `AUTH`, the login in `HELLO`, and `SELECT`.
//!
//! A listener may have a password of its own. Otherwise, with `auth: pass`, the servers decide: what changes
//! the login is sent on a connection of the client's own, and if the server agrees the client's requests take
//! lanes with that login from then on.

use proxima_wire::{
    message::Request,
    resp::{Args, Command, integer, replies},
};

use super::{
    append_error,
    state::{LOCKED, SETTLING, clear, is, set},
    twemproxy::not_logged_in,
    who::{User, Who},
};
use crate::dialect::{Access, Lease, Manner, Plan, Session};

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

/// What a client says in `AUTH`, or behind that word in `HELLO`: the user, empty for the default one, and the
/// password.
pub(super) type Said<'a> = (&'a [u8], &'a [u8]);

/// Begins a session, or begins it anew.
pub(super) fn begin(session: &mut Session) {
    match session.access {
        Access::Open => {}
        Access::Password(_) => set(session, LOCKED),
        Access::Pass => {
            let user = User::Nobody;
            session.login = Who {
                user,
                ..Who::default()
            }
            .encode();
        }
    }
}

/// Plans a request of a client that has not said the listener's password. `None`: the request may say it.
pub(super) fn refuse(request: &Request, manner: Manner, out: &mut Vec<u8>) -> Option<Plan> {
    let name = Command::of(request.command).map_or("", |command| command.name);
    if matches!(name, "auth" | "hello" | "quit" | "reset") {
        return None;
    }
    let text = not_logged_in(manner, NO_LOGIN);
    (0..replies(request.command)).for_each(|_| append_error(text, out));
    Some(Plan::Answer)
}

/// Checks what a client has said where the servers are not asked. Returns whether it is good; otherwise the
/// error is appended.
fn check(session: &mut Session, (user, password): Said<'_>, out: &mut Vec<u8>) -> bool {
    let is_default = matches!(user, b"" | b"default");
    let is_good = match session.access {
        // Servers take any password from a user that has none.
        Access::Open => is_default,
        Access::Password(_) => is_default && session.access.is_password(password),
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
        Access::Pass => return ask(session, Who::named(session, said), out),
        Access::Open if count == 2 => append_error(NO_PASSWORD, out),
        Access::Open | Access::Password(_) => {
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
    said: Option<Said<'_>>,
    out: &mut Vec<u8>,
) -> Option<Plan> {
    let who = Who {
        form,
        ..said.map_or_else(|| Who::of(session), |said| Who::named(session, said))
    };
    let changes = said.is_some() || form != session.form || Who::of(session).user == User::Nobody;
    if let Access::Pass = session.access
        && (changes || !is_kept(session))
    {
        return Some(ask(session, who, out));
    }
    if who.encode() != session.login && is_kept(session) {
        append_error(KEPT, out);
        return Some(Plan::Answer);
    }
    if who.encode() != session.login && !session.is_idle {
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
    session.login = Who {
        form,
        ..Who::of(session)
    }
    .encode();
    None
}

/// Answers `SELECT`.
pub(super) fn select(session: &mut Session, number: &[u8], out: &mut Vec<u8>) -> Plan {
    let who = Who::of(session);
    let own = i64::from(session.reach.database);
    match integer(number) {
        None => append_error("ERR value is not an integer or out of range", out),
        Some(number) if number == own && who.database.is_none() => out.extend_from_slice(OK),
        Some(number) if is_kept(session) && who.database.map(i64::from) == Some(number) => {
            out.extend_from_slice(OK);
        }
        Some(number) if number == own => {
            return ask(
                session,
                Who {
                    database: None,
                    ..who
                },
                out,
            );
        }
        Some(number @ 0..=0xffff) if session.reach.is_one => {
            let database = Some(number as u32);
            return ask(session, Who { database, ..who }, out);
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
    session.lease != Lease::Clean || session.has_subscriptions
}

/// Asks the server whether the client may have this login.
fn ask(session: &mut Session, who: Who, out: &mut Vec<u8>) -> Plan {
    if is_kept(session) {
        append_error(KEPT, out);
        return Plan::Answer;
    }
    if !session.is_idle {
        return Plan::Later;
    }
    let words = who.encode();
    if words.len() > LONGEST {
        append_error(WRONG, out);
        return Plan::Answer;
    }
    session.pending = Some(words);
    session.lease = Lease::Kept;
    set(session, SETTLING);
    Plan::Dedicated
}

/// Notes whether the server has agreed to the login that it was asked for. Its connection now has that login.
pub(super) fn answered(session: &mut Session, is_error: bool) {
    let Some(words) = session.pending.take() else {
        return;
    };
    session.lease = Lease::Spoilt;
    if !is_error {
        session.form = Who::decode(&words).form;
        session.login = words;
    }
}

impl Who {
    /// The same client with the user that it has named.
    fn named(session: &Session, (user, password): Said<'_>) -> Self {
        let user = match session.access {
            Access::Pass => User::Named {
                user: user.to_vec(),
                password: password.to_vec(),
            },
            Access::Open | Access::Password(_) => User::Pool,
        };
        Self {
            user,
            ..Self::of(session)
        }
    }
}
