//! The requests of attacks. Each is about a MiB long, whatever it is.

use super::Attack;
use crate::redis::request::command;

/// Bytes of a request.
const SIZE: usize = 1 << 20;

/// Bytes of one transaction: as many as a server or proxy may get in one read.
const TRANSACTION: usize = 64 * 1024;

/// The end of each reply, refused or not: a PING is answered in every state of a connection.
pub(crate) const END: &[u8] = b"~end\r\n";

/// Different keys of an attack: few, so that a server, which looks at all that it has for `KEYS`, is not what
/// is slow.
const KEYS: usize = 1_000;

/// Different keys of `WATCH`: a server looks at all that a client watches for each further one.
const WATCHED: usize = 32;

/// One in so many requests of a pipeline of scans is `KEYS`, which is far dearer.
const SCANS: usize = 64;

/// Keys with this tag are at one server.
const TAG: &str = "{~}";

/// The request of an attack and what ends it. `None` if the attack sends no request of Redis.
pub(crate) fn request(attack: Attack) -> Option<Vec<u8>> {
    let get = |place: usize| command(&["GET".to_owned(), format!("{TAG}{}", place % KEYS)]);
    let mut request = match attack {
        Attack::LargeMget => with_keys(&["MGET"], names("~", KEYS)),
        Attack::LargeMset => {
            let pairs = names("~", KEYS).flat_map(|key| [key, "v".to_owned()]);
            with_keys(&["MSET"], pairs)
        }
        Attack::LargeDel => with_keys(&["DEL"], names("~", KEYS)),
        Attack::LargeExists => with_keys(&["EXISTS"], names("~", KEYS)),
        Attack::LargeEval => {
            let count = fitting(names(TAG, KEYS)).len().to_string();
            with_keys(&["EVAL", "return 0", &count], names(TAG, KEYS))
        }
        Attack::LargeSinter => with_keys(&["SINTER"], names(TAG, KEYS)),
        Attack::LargeWatch => with_keys(&["WATCH"], names(TAG, WATCHED)),
        Attack::LargeSubscribe => with_keys(&["SUBSCRIBE"], names("~", usize::MAX)),
        Attack::Transactions => transaction(TRANSACTION, get).repeat(SIZE / TRANSACTION),
        Attack::LargeTransaction => transaction(SIZE, get),
        Attack::Scans => pipeline(SIZE, |place| match place % SCANS {
            0 => command(&["KEYS", "~none*"]),
            _ => command(&["SCAN", "0"]),
        }),
        Attack::TinyGets => pipeline(SIZE, |place| {
            command(&[&b"GET"[..], &[b'a' + (place % 26) as u8]])
        }),
        Attack::InlineCommands => b"GET a\r\n".repeat(SIZE / 7),
        _ => return None,
    };
    request.extend(command(&["PING", "~end"]));
    Some(request)
}

/// Nearly a MiB of a request that does not end: of many keys, of a value, of a line.
pub(crate) fn half(number: u32) -> Vec<u8> {
    match number % 3 {
        0 => [&b"*1000000\r\n"[..], &b"$5\r\n~half\r\n".repeat(SIZE / 12)].concat(),
        1 => [
            &b"*3\r\n$3\r\nSET\r\n$5\r\n~half\r\n$1000000\r\n"[..],
            &[b'h'; 999_999],
        ]
        .concat(),
        _ => vec![b'h'; 60_000],
    }
}

/// Requests for the value of `key`, so many times: at once, one after the other, or between small ones.
pub(crate) fn repeated(key: &str, times: usize, number: u32) -> Vec<u8> {
    let get = command(&["GET", key]);
    match number % 3 {
        0 => command(&[&["MGET"], &vec![key; times][..]].concat()),
        1 => get.repeat(times),
        _ => [get, command(&["GET", "~x"]), command(&["DEL", "~x"])]
            .concat()
            .repeat(times),
    }
}

/// Bytes that look like requests, and are not.
pub(crate) fn garbage() -> Vec<Vec<u8>> {
    [
        &b"*-2\r\n"[..],
        b"*1000000000\r\n",
        b"*99999999999999999999\r\n",
        b"*1\r\n$-1\r\n",
        b"*1\r\n*1\r\n$4\r\nPING\r\n",
        b"*2\r\n$3\r\nGET\r\n$99999999999\r\n",
        b"*2\r\n$3\r\nGET\r\n:1\r\n",
        b"*2\r\n$3\r\nGET\r\n$7\r\n~canaryxx*1\r\n",
        b"$4\r\nPING\r\n",
        b"GET \"~canary\r\n",
        b"*0\r\n*0\r\n*-1\r\n*0\r\n",
        b"*2\r\n$3\r\nGET\r\n$19\r\n\r\n$7\r\n~canary\r\n*1\r\n\r\n",
    ]
    .map(<[u8]>::to_vec)
    .into()
}

fn names(before: &str, different: usize) -> impl Iterator<Item = String> {
    (0..).map(move |number| format!("{before}{}", number % different))
}

/// As many of these words as a request has room for, an even number of them.
fn fitting(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut size = 0;
    let mut fit: Vec<_> = words
        .take_while(|word| {
            size += word.len() + "$1\r\n\r\n".len();
            size <= SIZE
        })
        .collect();
    fit.truncate(fit.len() & !1);
    fit
}

fn with_keys(head: &[&str], keys: impl Iterator<Item = String>) -> Vec<u8> {
    let words: Vec<_> = head.iter().map(|&word| word.to_owned()).collect();
    command(&[words, fitting(keys)].concat())
}

fn pipeline(size: usize, request: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let mut all = Vec::new();
    let mut place = 0;
    while all.len() < size {
        all.extend(request(place));
        place += 1;
    }
    all
}

/// A transaction of at most `size` bytes.
fn transaction(size: usize, request: impl Fn(usize) -> Vec<u8>) -> Vec<u8> {
    let (begin, end) = (command(&["MULTI"]), command(&["EXEC"]));
    let room = size - begin.len() - end.len() - request(KEYS - 1).len();
    [begin, pipeline(room, request), end].concat()
}

#[cfg(test)]
mod tests {
    use clap::ValueEnum;

    use super::*;
    use crate::protocol::Protocol;

    #[test]
    fn each_request_is_a_mebibyte_and_a_transaction_comes_in_one_piece() {
        let mut count = 0;
        for attack in Attack::value_variants() {
            let Some(request) = request(*attack) else { continue };
            count += 1;
            assert!(attack.is_made_in(Protocol::Redis), "{attack:?}");
            assert!(request.ends_with(END), "{attack:?}");
            let missing = (SIZE + 100).abs_diff(request.len());
            assert!(missing < 2_048, "{attack:?}: {} bytes", request.len());
        }
        assert_eq!(count, 13);
        let one = transaction(TRANSACTION, |_| command(&["GET", "~"]));
        assert!(
            one.len() <= TRANSACTION && one.len() > TRANSACTION - 64,
            "{}",
            one.len()
        );
    }
}
