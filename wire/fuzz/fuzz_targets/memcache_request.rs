//! A request's head lies within the bytes and does not depend on the bytes behind it, and its parts are read
//! as what they are.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::memcache::{
    Command, KEY, Limits, default_reply, key, keys, mark_request, reply, request, single, take_key,
};
use proxima_wire::message::{Bad, NextKey, Parsed, Span};

fuzz_target!(|bytes: &[u8]| {
    let limits = Limits {
        value: 1000,
        mcrouters: true,
    };
    let head = match request(bytes, &limits) {
        Parsed::More => return,
        Parsed::Bad(bad) => bad.head as usize,
        Parsed::Head(request) => request.head as usize,
    };
    assert!(head <= bytes.len());
    if matches!(request(bytes, &limits), Parsed::Head(_)) && !bytes[..head].ends_with(b"\n") {
        // A line of many keys that has not ended: its keys are taken as they come.
        let mut at = 0;
        while let NextKey::Key(Span { start: _, len }) | NextKey::Bad(Bad { head: len, .. }) =
            take_key(&bytes[at..])
        {
            assert!(len > 0);
            at += len as usize;
        }
        return;
    }
    assert_eq!(request(&bytes[..head.max(1) - 1], &limits), Parsed::More);
    let Parsed::Head(whole) = request(bytes, &limits) else {
        return;
    };
    assert_eq!(request(&bytes[..head], &limits), Parsed::Head(whole));
    for span in [whole.key, whole.more_keys, whole.ttl, whole.quiet] {
        assert!(span.end() < head);
    }
    assert!(key(&whole, bytes, &mut [0; KEY]).len() <= KEY);
    let mut marked = Vec::new();
    // The line may have become too long.
    if mark_request(&whole, bytes, 7, &mut marked)
        && let Parsed::Head(other) = request(&marked, &limits)
    {
        assert_eq!((other.command, other.body), (whole.command, whole.body));
        assert_eq!(other.key.of(&marked), whole.key.of(bytes));
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
    // A key or opaque of the client's may make the line longer than any server's.
    if let Parsed::Head(reply) = reply(command, &out) {
        assert_eq!(
            (reply.outcome, reply.len()),
            (outcome, out.len() as u64),
            "{}",
            out.escape_ascii()
        );
    }
});
