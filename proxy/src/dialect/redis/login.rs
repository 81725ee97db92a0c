//! The proxy's login at a server: `HELLO` with the version of the protocol, credentials, and a name.

use proxima_wire::{
    message::{Message, Parse, Parsed},
    resp::{Expect, reply},
};

use crate::dialect::{Conversation, Login, MALFORMED};

/// The login of RESP3 clients, in the words of a session. An empty one is RESP2.
pub(super) const RESP3: &[u8] = b"3";

/// The flag of a packed version that is Valkey's.
const VALKEY: u64 = 1 << 63;

/// Takes one step.
pub(super) fn step(conversation: &mut Conversation, bytes: &[u8], out: &mut Vec<u8>) -> Login {
    if conversation.step == 0 {
        conversation.step = 1;
        let protocol = if *conversation.login == *RESP3 { "3" } else { "2" };
        let hello = format!("*4\r\n$5\r\nHELLO\r\n$1\r\n{protocol}\r\n$7\r\nSETNAME\r\n$7\r\nproxima\r\n");
        out.extend_from_slice(hello.as_bytes());
        return Login::More { used: 0 };
    }
    match reply(&mut Parse::default(), Expect::Reply, bytes) {
        Parsed::Head(Message::Last(head)) => {
            let Some(said) = bytes.get(..head.len() as usize) else {
                return Login::More { used: 0 };
            };
            if head.outcome.is_error() {
                let text = String::from_utf8_lossy(said.trim_ascii());
                return Login::Refused(text.trim_start_matches('-').to_owned());
            }
            conversation.version = packed(said);
            Login::Ready { used: said.len() }
        }
        Parsed::Head(Message::Part(_) | Message::Push(_)) | Parsed::More => Login::More { used: 0 },
        Parsed::Bad(_) => Login::Refused(MALFORMED.into()),
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
