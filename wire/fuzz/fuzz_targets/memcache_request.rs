//! A request's head lies within the bytes and does not depend on the bytes behind it, and its parts are read
//! as what they are. How the bytes were cut on their way does not matter either.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::memcache::{
    Command, KEY, LINE, Limits, default_reply, key, keys, mark_request, reply, request, single, take_key,
};
use proxima_wire::message::{NextKey, Parsed, Request, Span};

/// The keys of a line of many keys, taken as they come from the first key on, up to a bad one. The flag:
/// there was a bad one.
fn taken(begun: &Request, bytes: &[u8]) -> (Vec<Span>, bool) {
    let mut keys = Vec::new();
    let mut at = begun.key.start as usize;
    loop {
        match take_key(&bytes[at..]) {
            NextKey::Key(key) => {
                assert!(key.len > 0);
                keys.push(Span::new(at + key.start as usize, at + key.end()));
                at += key.end();
            }
            NextKey::End(len) => {
                assert_eq!(at + len, bytes.len());
                return (keys, false);
            }
            NextKey::Bad(bad) => {
                assert!(bad.head > 0);
                return (keys, true);
            }
            NextKey::More(len) => {
                assert!(at + len <= bytes.len());
                return (keys, false);
            }
        }
    }
}

/// Checks what `bytes`, the beginning of a line that has not ended, are read as: nothing yet, or the
/// beginning of a line of many keys that is longer than others may be. `whole` is what the line is read as
/// with its end.
///
/// Such a line is taken before its end has come, as it may have any length. But it must not depend on how it
/// was cut whether it is taken, as what, and which keys it has.
fn check_cut(whole: &Parsed<Request>, line: &[u8], bytes: &[u8], limits: &Limits) {
    let cut = request(bytes, limits);
    if bytes.len() <= LINE {
        assert_eq!(cut, Parsed::More);
        return;
    }
    match (whole, cut) {
        (Parsed::Head(whole), Parsed::Head(begun)) => {
            assert_eq!((begun.command, begun.class), (whole.command, whole.class));
            assert_eq!((begun.head as usize, begun.body), (bytes.len(), 0));
            assert_eq!((begun.key.start, begun.ttl), (whole.key.start, whole.ttl));
            assert_eq!(begun.more_keys.end(), bytes.len());
            assert_eq!(taken(&begun, line), (keys(whole, line).collect(), false));
        }
        // A key or a byte behind one is bad, which is found when its turn comes.
        (Parsed::Bad(_), Parsed::Head(begun)) => assert!(taken(&begun, line).1),
        (whole, cut) => assert_eq!(&cut, whole),
    }
}

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        value: 1000,
        mcrouters: true,
    };
    let read = request(bytes, &limits);
    let head = match read {
        Parsed::More => return,
        Parsed::Bad(bad) => bad.head as usize,
        Parsed::Head(request) => request.head as usize,
    };
    assert!(head <= bytes.len());
    if let Parsed::Head(begun) = read
        && !bytes[..head].ends_with(b"\n")
    {
        assert!(head > LINE && head == bytes.len());
        taken(&begun, bytes);
        // What was there when the line could be no other has decided.
        let first = Request {
            head: LINE as u32 + 1,
            more_keys: Span::new(begun.more_keys.start as usize, LINE + 1),
            ..begun
        };
        assert_eq!(request(&bytes[..LINE + 1], &limits), Parsed::Head(first));
        return;
    }
    if head == 0 {
        // The connection ends here, which no byte behind the longest line changes.
        let within = &bytes[..bytes.len().min(LINE + 1)];
        assert_eq!(request(within, &limits), read);
        return;
    }
    check_cut(&read, &bytes[..head], &bytes[..head - 1], &limits);
    if head > LINE + 1 {
        check_cut(&read, &bytes[..head], &bytes[..LINE + 1], &limits);
    }
    let Parsed::Head(whole) = read else {
        return;
    };
    assert_eq!(request(&bytes[..head], &limits), Parsed::Head(whole));
    for span in [whole.key, whole.more_keys, whole.ttl, whole.quiet] {
        assert!(span.end() < head);
    }
    assert!(key(&whole, bytes, &mut [0; KEY]).len() <= KEY);
    let mut marked = Vec::new();
    if mark_request(&whole, bytes, 7, &mut marked) {
        match request(&marked, &limits) {
            Parsed::Head(other) => {
                assert_eq!((other.command, other.body), (whole.command, whole.body));
                assert_eq!(other.key.of(&marked), whole.key.of(bytes));
            }
            // The line has become too long, and nothing else is wrong with it.
            _ => assert!(marked.len() > LINE + 1, "{}", marked.escape_ascii()),
        }
    }
    let mut out = Vec::new();
    let outcome = default_reply(&whole, bytes, &mut out);
    let command = Command::from_number(whole.command).unwrap();
    if !whole.more_keys.is_empty() {
        for span in keys(&whole, bytes) {
            let mut line = Vec::new();
            single(&whole, bytes, span.of(bytes), &mut line);
            let Parsed::Head(one) = request(&line, &limits) else {
                panic!("{}", line.escape_ascii())
            };
            assert_eq!((one.command, one.key.of(&line)), (whole.command, span.of(bytes)));
            assert_eq!(
                (one.ttl.of(&line), one.head as usize),
                (whole.ttl.of(bytes), line.len())
            );
        }
    }
    match reply(command, &out) {
        Parsed::Head(reply) => assert_eq!(
            (reply.outcome, reply.len()),
            (outcome, out.len() as u64),
            "{}",
            out.escape_ascii()
        ),
        // A key or opaque of the client's may make the line longer than any server's.
        _ => assert!(out.len() > LINE + 1, "{}", out.escape_ascii()),
    }
});
