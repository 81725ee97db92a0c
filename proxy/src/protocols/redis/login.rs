//! The proxy's login at a server: `HELLO` with the version of the protocol, credentials, and a name; then the
//! database.

use proxima_wire::{
    message::{Message, Outcome, Parse, Parsed},
    resp::{Expect, append_number, reply},
};

use super::{
    PROBE, append_bulk,
    identity::{Identity, User},
};
use crate::protocol::{EndState, Login, MALFORMED, ServerLogin, StateSlot};

/// The name of the proxy's connections at servers.
const NAME: &[u8] = b"proxima";
/// A server's answer to a client that has to log in first.
const NO_LOGIN: &[u8] = b"-NOAUTH";
/// A server's answer to one connection more than `maxclients`.
const FULL: &[u8] = b"-ERR max number of clients";
/// The flag of a packed version that is Valkey's.
const VALKEY: u64 = 1 << 63;

/// A login that is under way. Nothing of it outlives its end.
#[derive(Default)]
struct Opening {
    /// The replies that are due.
    due: u32,
    /// The server's words for a client that has not logged in.
    refusal: Vec<u8>,
}

impl EndState for Opening {
    fn memory(&self) -> usize {
        self.refusal.capacity()
    }
}

/// Takes one step.
pub(super) fn step(
    lane: &mut StateSlot,
    with: &mut ServerLogin<'_>,
    bytes: &[u8],
    out: &mut Vec<u8>,
) -> Login {
    let identity = Identity::decode(with.words);
    if lane.get::<Opening>().is_none() {
        let due = begin(&identity, with, out);
        lane.change(|opening: &mut Opening| opening.due = due);
    }
    let Some(opening) = lane.get_mut::<Opening>() else {
        return Login::Failed(MALFORMED.into());
    };
    let mut used = 0;
    while opening.due > 0 {
        let rest = bytes.get(used..).unwrap_or_default();
        let said = match reply(&mut Parse::default(), Expect::Reply, rest) {
            Parsed::Head(Message::Last(head)) => {
                rest.get(..head.len() as usize).map(|said| (head.outcome, said))
            }
            Parsed::Head(Message::Part(_) | Message::Push(_) | Message::PushPart(_)) | Parsed::More => None,
            Parsed::Bad(_) => return Login::Failed(MALFORMED.into()),
        };
        let Some((outcome, said)) = said else {
            return Login::More { used };
        };
        if outcome.is_error() {
            if !is_nobody(&identity) || said.starts_with(FULL) {
                return rejected(&identity, outcome, said);
            }
            if said.starts_with(NO_LOGIN) {
                opening.refusal = said.to_vec();
            }
        }
        if let version @ 1.. = packed(said) {
            with.version = version;
        }
        used += said.len();
        opening.due -= 1;
    }
    let refusal = std::mem::take(&mut opening.refusal);
    lane.clear();
    match refusal.is_empty() {
        true => Login::Ready { used },
        false => Login::Limited {
            used,
            why: String::from_utf8_lossy(&refusal).trim().to_owned(),
        },
    }
}

/// Appends the requests of the login. Returns their number.
fn begin(identity: &Identity, with: &ServerLogin<'_>, out: &mut Vec<u8>) -> u32 {
    let own = with.own;
    let (user, password) = match &identity.user {
        User::Pool => (
            own.map_or(&[][..], |own| &own.user),
            own.and_then(|own| own.password.as_deref()),
        ),
        User::Nobody => (&[][..], None),
        User::Named { user, password } => (&user[..], Some(&password[..])),
    };
    let greeted = match is_nobody(identity) {
        // Until a client has logged in, the server answers each of its requests with an error. Where several
        // clients have no login, the proxy must know before whether the server takes anything from them.
        true if with.is_shared => {
            out.extend_from_slice(PROBE);
            1
        }
        true => 0,
        false => {
            append_hello(identity.form, user, password, out);
            1
        }
    };
    let database = identity.database.or(own.map(|own| own.database)).unwrap_or(0);
    if database == 0 {
        return greeted;
    }
    append_number(b'*', 2, out);
    append_bulk(b"SELECT", out);
    append_bulk(database.to_string().as_bytes(), out);
    greeted + 1
}

/// Appends the greeting, in which a user with a password logs in.
fn append_hello(form: u16, user: &[u8], password: Option<&[u8]>, out: &mut Vec<u8>) {
    append_number(b'*', if password.is_some() { 7 } else { 4 }, out);
    append_bulk(b"HELLO", out);
    append_bulk(if form == 0 { b"2" } else { b"3" }, out);
    if let Some(password) = password {
        append_bulk(b"AUTH", out);
        append_bulk(if user.is_empty() { b"default" } else { user }, out);
        append_bulk(password, out);
    }
    append_bulk(b"SETNAME", out);
    append_bulk(NAME, out);
}

/// Is nothing said to the server of a version, nor of a user?
fn is_nobody(identity: &Identity) -> bool {
    identity.user == User::Nobody && identity.form == 0
}

/// A server has answered an error to the login.
fn rejected(identity: &Identity, outcome: Outcome, said: &[u8]) -> Login {
    let is_clients_own = identity.user != User::Pool || identity.database.is_some();
    let text = String::from_utf8_lossy(said.trim_ascii());
    let text = text.trim_start_matches('-');
    match outcome {
        // The server cannot serve any login now.
        Outcome::Busy | Outcome::TryAgain => Login::Failed(text.to_owned()),
        _ if is_clients_own && said.starts_with(NO_LOGIN) => {
            Login::Denied(b"-NOAUTH Authentication required.\r\n".to_vec())
        }
        _ if is_clients_own => Login::Denied(said.to_vec()),
        _ if said.starts_with(FULL) => Login::Failed(text.to_owned()),
        _ => Login::Rejected(format!("login refused: {text}")),
    }
}

/// The value of a field in the reply to `HELLO`.
fn field<'a>(said: &'a [u8], name: &[u8]) -> &'a [u8] {
    let mut lines = said.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii);
    lines.find(|&line| line == name);
    lines.nth(1).unwrap_or_default()
}

/// The version that a server says, as one number: 16 bits each of major, minor and patch.
fn packed(said: &[u8]) -> u64 {
    let numbers = field(said, b"version").split(|&byte| byte == b'.');
    let numbers = numbers.map(|part| {
        str::from_utf8(part)
            .ok()
            .and_then(|part| part.parse::<u16>().ok())
    });
    let version = numbers
        .take(3)
        .fold(0, |sum, part| sum << 16 | u64::from(part.unwrap_or(0)));
    match field(said, b"server") {
        b"valkey" => version | VALKEY,
        _ => version,
    }
}

/// The name and the version of a server that has told this; 0: the oldest one whose commands are known.
pub(super) fn server(packed: u64) -> (&'static str, String) {
    let packed = match packed {
        0 => 7 << 32,
        packed => packed,
    };
    let name = if packed & VALKEY == 0 { "redis" } else { "valkey" };
    let part = |bits: u32| (packed & !VALKEY) >> bits & 0xffff;
    (name, format!("{}.{}.{}", part(32), part(16), part(0)))
}

#[cfg(test)]
mod tests {
    use super::{packed, server};

    #[test]
    fn a_server_is_known_by_its_own_words() {
        for (said, expected) in [
            (
                "*4\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n",
                ("redis", "7.0.15"),
            ),
            (
                "%2\r\n$6\r\nserver\r\n$6\r\nvalkey\r\n$7\r\nversion\r\n$5\r\n9.1.2\r\n",
                ("valkey", "9.1.2"),
            ),
            ("nonsense", ("redis", "7.0.0")),
        ] {
            let (name, version) = server(packed(said.as_bytes()));
            assert_eq!((name, version.as_str()), expected, "{said:?}");
        }
    }
}
