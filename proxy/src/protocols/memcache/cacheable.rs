//! The replies of memcached that may be kept: those to `get`, and to `mg` with flags that only look.

use proxima_wire::{
    memcache::{self, Command},
    message::{Class, Outcome, Reply, Request},
};

use super::Memcache;
use crate::protocol::{Cacheable, ChangeScope, Fit, ValueFrame};

/// The first byte of the form of `get`, and of that of `mg`, which its flags follow.
const GET: u8 = b'g';
const META: u8 = b'm';

/// The words of a line, without its end.
fn words(message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let line = message.split(|&byte| byte == b'\r' || byte == b'\n').next();
    let words = line.unwrap_or_default().split(|&byte| byte == b' ');
    words.filter(|word| !word.is_empty())
}

/// The opaque word of a request or of a reply.
fn opaque(line: &[u8]) -> Option<&[u8]> {
    words(line).skip(1).find(|word| word[0] == b'O')
}

/// Appends a meta line: the code, and of the flags of the request those that a reply repeats.
fn append_meta(code: &[u8], request: &Request, message: &[u8], len: Option<usize>, out: &mut Vec<u8>) {
    out.extend_from_slice(code);
    let mut digits = itoa::Buffer::new();
    let len = len.map(|len| digits.format(len).as_bytes());
    if let Some(len) = len.filter(|_| code == b"VA") {
        out.push(b' ');
        out.extend_from_slice(len);
    }
    for flag in words(message).skip(2) {
        match flag {
            b"k" => {
                out.extend_from_slice(b" k");
                out.extend_from_slice(request.key.of(message));
                out.extend_from_slice(if request.base64_key { b" b" } else { b"" });
            }
            b"f" => out.extend_from_slice(b" f0"),
            b"s" => {
                out.extend_from_slice(b" s");
                out.extend_from_slice(len.unwrap_or_default());
            }
            [b'O', ..] => {
                out.push(b' ');
                out.extend_from_slice(flag);
            }
            _ => {}
        }
    }
    out.extend_from_slice(b"\r\n");
}

impl<const ANNOUNCES: bool> Cacheable for Memcache<ANNOUNCES> {
    fn form(&self, _: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> bool {
        match Command::from_number(request.command) {
            Some(Command::Get) if request.more_keys.is_empty() => out.push(GET),
            Some(Command::MetaGet) => {
                out.push(META);
                for flag in words(message).skip(2) {
                    match flag {
                        // The opaque is each client's own, and quiet is between the client and the proxy.
                        [b'O', ..] => out.push(b'O'),
                        b"q" => {}
                        &[flag @ (b'v' | b'f' | b's' | b'k' | b'b')] => out.push(flag),
                        _ => return false,
                    }
                }
            }
            _ => return false,
        }
        true
    }

    fn kept<'b>(&self, request: &Request, _: &[u8], reply: &Reply, bytes: &'b [u8]) -> Fit<'b> {
        // Won, stale, or won by another client: a client was told to store the value anew.
        let is_promise = |word: &[u8]| matches!(word, b"W" | b"X" | b"Z");
        let is_meta = request.command == Command::MetaGet as u16;
        match is_meta && words(bytes).skip(1).any(is_promise) {
            true => Fit::Alone,
            false => Fit::Kept(*reply, bytes),
        }
    }

    fn own(&self, request: &Request, message: &[u8], bytes: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if request.command != Command::MetaGet as u16 {
            return None;
        }
        let (ours, kept) = (opaque(message)?, opaque(bytes)?);
        if ours == kept {
            return None;
        }
        let at = kept.as_ptr() as usize - bytes.as_ptr() as usize;
        out.extend_from_slice(&bytes[..at]);
        out.extend_from_slice(ours);
        Some(at + kept.len())
    }

    fn value_frame(
        &self,
        request: &Request,
        message: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Option<ValueFrame> {
        let (has_value, tail, trailer): (bool, &[u8], u32) = match Command::from_number(request.command)? {
            Command::Get if request.more_keys.is_empty() => {
                out.extend_from_slice(b"VALUE ");
                out.extend_from_slice(request.key.of(message));
                out.extend_from_slice(b" 0 ");
                out.extend_from_slice(itoa::Buffer::new().format(len).as_bytes());
                out.extend_from_slice(b"\r\n");
                (true, b"\r\nEND\r\n", 5)
            }
            Command::MetaGet => {
                let is_known =
                    |flag: &[u8]| matches!(flag, b"v" | b"f" | b"s" | b"k" | b"b" | b"q" | [b'O', ..]);
                if !words(message).skip(2).all(is_known) {
                    return None;
                }
                let has_value = words(message).skip(2).any(|flag| flag == b"v");
                let code: &[u8] = if has_value { b"VA" } else { b"HD" };
                append_meta(code, request, message, Some(len), out);
                (has_value, if has_value { b"\r\n" } else { b"" }, 0)
            }
            _ => return None,
        };
        Some(ValueFrame {
            has_value,
            tail,
            trailer,
        })
    }

    fn removed(&self, request: &Request, message: &[u8], out: &mut Vec<u8>) -> Option<Reply> {
        let begin = out.len();
        match Command::from_number(request.command)? {
            Command::Delete => out.extend_from_slice(b"DELETED\r\n"),
            Command::MetaDelete => {
                let is_known = |flag: &[u8]| matches!(flag, b"k" | b"b" | b"q" | [b'O', ..]);
                if !words(message).skip(2).all(is_known) {
                    return None;
                }
                append_meta(b"HD", request, message, None, out);
            }
            _ => return None,
        }
        Some(Reply::new(Outcome::Deleted, out.len() - begin))
    }

    fn changes(&self, request: &Request, message: &[u8]) -> ChangeScope {
        match request.class {
            Class::Write | Class::Delete | Class::Arithmetic | Class::Touch => ChangeScope::Keys,
            Class::Admin if request.command == Command::FlushAll as u16 => {
                let delay = words(message).nth(1).and_then(memcache::time);
                match delay.and_then(|delay| u32::try_from(delay).ok()) {
                    Some(seconds) if seconds > 0 => ChangeScope::EverythingLater(seconds),
                    _ => ChangeScope::Everything,
                }
            }
            Class::Read | Class::Admin | Class::Session => ChangeScope::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use proxima_wire::message::{Outcome, Parsed, Reply};

    use super::Memcache;
    use crate::protocol::{Cacheable, ChangeScope, Fit, Requests};

    fn form(line: &str) -> Option<String> {
        let Parsed::Head(request) = Memcache::PLAIN.head(line.as_bytes()) else {
            panic!("{line:?} is no request");
        };
        let mut out = Vec::new();
        let may = Memcache::PLAIN.form(0, &request, line.as_bytes(), &mut out);
        may.then(|| String::from_utf8(out).unwrap())
    }

    #[test]
    fn only_looks_have_a_form_and_what_differs_in_bytes_differs_in_form() {
        for (line, expected) in [
            ("get a\r\n", Some("g")),
            ("get  a \r\n", Some("g")),
            ("gets a\r\n", None),
            ("get a b\r\n", None),
            ("gat 0 a\r\n", None),
            ("set a 0 0 1\r\n", None),
            ("delete a\r\n", None),
            ("mg a\r\n", Some("m")),
            ("mg a v\r\n", Some("mv")),
            ("mg a s v\r\n", Some("msv")),
            ("mg a v s\r\n", Some("mvs")),
            ("mg a v q O123 k\r\n", Some("mvOk")),
            ("mg a O1 v k q\r\n", Some("mOvk")),
            ("mg YQ== b k v\r\n", Some("mbkv")),
            ("mg a v c\r\n", None),
            ("mg a v t\r\n", None),
            ("mg a v h\r\n", None),
            ("mg a v l\r\n", None),
            ("mg a v N30\r\n", None),
            ("mg a v R30\r\n", None),
            ("mg a v T30\r\n", None),
            ("mg a v E5\r\n", None),
            ("lease-get a\r\n", None),
            ("metaget a\r\n", None),
        ] {
            assert_eq!(form(line).as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn a_reply_that_makes_a_promise_to_one_client_is_not_kept() {
        for (line, bytes, kept) in [
            ("mg a v\r\n", "VA 1 \r\nx\r\n", true),
            ("mg a f v\r\n", "VA 1 f0 W\r\nx\r\n", false),
            ("mg a f v\r\n", "VA 1 f0 X Z\r\nx\r\n", false),
            ("mg a k v\r\n", "VA 1 kW\r\nx\r\n", true),
            ("mg a v\r\n", "EN\r\n", true),
            ("get W\r\n", "VALUE W 0 1\r\nx\r\nEND\r\n", true),
        ] {
            let Parsed::Head(request) = Memcache::PLAIN.head(line.as_bytes()) else {
                panic!();
            };
            let reply = Reply::new(Outcome::Found, bytes.len());
            let found = Memcache::PLAIN.kept(&request, line.as_bytes(), &reply, bytes.as_bytes());
            assert_eq!(found != Fit::Alone, kept, "{line:?} {bytes:?}");
        }
    }

    #[test]
    fn each_client_gets_its_own_opaque() {
        for (line, kept, expected) in [
            ("mg a O22 v\r\n", "VA 1 O1\r\nx\r\n", Some("VA 1 O22\r\nx\r\n")),
            ("mg a O1 v\r\n", "VA 1 O1\r\nx\r\n", None),
            (
                "mg a v O7 k\r\n",
                "VA 1 O123 ka\r\nx\r\n",
                Some("VA 1 O7 ka\r\nx\r\n"),
            ),
            ("mg a v\r\n", "VA 1\r\nO\r\n", None),
            ("mg a O5\r\n", "EN\r\n", None),
            ("get a\r\n", "VALUE a 0 2\r\nO1\r\nEND\r\n", None),
        ] {
            let Parsed::Head(request) = Memcache::PLAIN.head(line.as_bytes()) else {
                panic!();
            };
            let mut out = Vec::new();
            let own = Memcache::PLAIN.own(&request, line.as_bytes(), kept.as_bytes(), &mut out);
            let own = own.map(|first| String::from_utf8_lossy(&out).into_owned() + &kept[first..]);
            assert_eq!(own.as_deref(), expected);
        }
    }

    #[test]
    fn a_value_is_given_in_the_words_of_each_request() {
        for (line, expected) in [
            ("get a\r\n", Some("VALUE a 0 3\r\nxyz\r\nEND\r\n")),
            ("mg a v\r\n", Some("VA 3\r\nxyz\r\n")),
            ("mg a s v f k O7 q\r\n", Some("VA 3 s3 f0 ka O7\r\nxyz\r\n")),
            ("mg YQ== b k v\r\n", Some("VA 3 kYQ== b\r\nxyz\r\n")),
            ("mg a s\r\n", Some("HD s3\r\n")),
            ("mg a\r\n", Some("HD\r\n")),
            ("get a b\r\n", None),
            ("gets a\r\n", None),
            ("gat 1 a\r\n", None),
            ("mg a v c\r\n", None),
            ("mg a v t\r\n", None),
            ("mg a N1 v\r\n", None),
            ("set a 0 0 1\r\n", None),
        ] {
            let Parsed::Head(request) = Memcache::PLAIN.head(line.as_bytes()) else {
                panic!("{line:?}");
            };
            let mut out = Vec::new();
            let around = Memcache::PLAIN.value_frame(&request, line.as_bytes(), 3, &mut out);
            if let Some(around) = around {
                out.extend_from_slice(if around.has_value { b"xyz" } else { b"" });
                out.extend_from_slice(around.tail);
                assert_eq!(around.trailer > 0, out.ends_with(b"END\r\n"));
            }
            let given = around.map(|_| String::from_utf8(out).unwrap());
            assert_eq!(given.as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn a_removed_key_is_told_where_a_request_removes_one() {
        for (line, expected) in [
            ("delete a\r\n", Some("DELETED\r\n")),
            ("delete a noreply\r\n", Some("DELETED\r\n")),
            ("md a\r\n", Some("HD\r\n")),
            ("md a q k O1\r\n", Some("HD ka O1\r\n")),
            ("md a I\r\n", None),
            ("md a C1\r\n", None),
            ("md a x\r\n", None),
            ("set a 0 0 1\r\n", None),
        ] {
            let Parsed::Head(request) = Memcache::PLAIN.head(line.as_bytes()) else {
                panic!("{line:?}");
            };
            let mut out = Vec::new();
            let removed = Memcache::PLAIN.removed(&request, line.as_bytes(), &mut out);
            let told = removed.map(|_| String::from_utf8(out).unwrap());
            assert_eq!(told.as_deref(), expected, "{line:?}");
        }
    }

    #[test]
    fn what_a_request_changes_is_known() {
        for (line, changed) in [
            ("get a\r\n", ChangeScope::Nothing),
            ("mg a v\r\n", ChangeScope::Nothing),
            ("mg a v N30\r\n", ChangeScope::Keys),
            ("mg a v T30\r\n", ChangeScope::Keys),
            ("set a 0 0 1\r\n", ChangeScope::Keys),
            ("touch a 1\r\n", ChangeScope::Keys),
            ("gat 1 a\r\n", ChangeScope::Keys),
            ("md a\r\n", ChangeScope::Keys),
            ("ma a\r\n", ChangeScope::Keys),
            ("flush_all\r\n", ChangeScope::Everything),
            ("flush_all 0\r\n", ChangeScope::Everything),
            ("flush_all noreply\r\n", ChangeScope::Everything),
            ("flush_all 30\r\n", ChangeScope::EverythingLater(30)),
            ("version\r\n", ChangeScope::Nothing),
        ] {
            let Parsed::Head(request) = Memcache::PLAIN.head(line.as_bytes()) else {
                panic!("{line:?}");
            };
            assert_eq!(
                Memcache::PLAIN.changes(&request, line.as_bytes()),
                changed,
                "{line:?}"
            );
        }
    }
}
