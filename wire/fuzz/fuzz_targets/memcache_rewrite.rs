//! A request with another key and expiry is the same request with another key and expiry, and has a reply.
#![no_main]

use libfuzzer_sys::arbitrary::{self, Arbitrary};
use libfuzzer_sys::fuzz_target;
use proxima_wire::memcache::{KEY, LINE, Limits, Rewrite, key, request, rewrite};
use proxima_wire::message::Parsed;

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    key: Option<&'a [u8]>,
    ttl: Option<i64>,
    bytes: &'a [u8],
}

fuzz_target!(|input: Input<'_>| {
    let limits = Limits::default();
    let Parsed::Head(old) = request(input.bytes, &limits) else {
        return;
    };
    if !input.bytes[..old.head as usize].ends_with(b"\n") {
        // A line of many keys that has not ended is taken key by key, and is never rewritten as a whole.
        return;
    }
    let mut line = Vec::new();
    if !rewrite(
        &old,
        input.bytes,
        &Rewrite {
            key: input.key,
            ttl: input.ttl,
        },
        &mut line,
    ) {
        assert!(line.is_empty());
        return;
    }
    let Parsed::Head(new) = request(&line, &limits) else {
        // A longer key or time can make a line too long, and nothing else is wrong with it.
        assert!(line.len() > LINE + 1 && line.len() > old.head as usize);
        return;
    };
    assert_eq!(new.head as usize, line.len());
    assert_eq!(
        (new.command, new.class, new.body),
        (old.command, old.class, old.body)
    );
    assert_eq!((new.is_quiet, new.base64_key), (false, old.base64_key));
    assert_eq!(new.more_keys.of(&line), old.more_keys.of(input.bytes));
    let (mut before, mut after) = ([0; KEY], [0; KEY]);
    let expected = match input.key {
        Some(key) if !old.key.is_empty() => key,
        _ => key(&old, input.bytes, &mut before),
    };
    assert_eq!(key(&new, &line, &mut after), expected);
});
