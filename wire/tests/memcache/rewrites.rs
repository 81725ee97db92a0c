//! Request heads that are rewritten with changes.

use crate::rows::each_row;
use proptest::prelude::*;
use proxima_wire::memcache::{Limits, Rewrite, key, request, rewrite};
use proxima_wire::message::{Parsed, Request};

fn parse(line: &[u8]) -> Request {
    match request(line, &Limits::default()) {
        Parsed::Head(request) => request,
        other => panic!("{}: {other:?}", line.escape_ascii()),
    }
}

fn rewritten(line: &str, key: Option<&[u8]>, ttl: Option<i64>) -> Option<String> {
    let mut out = b">".to_vec();
    let done = rewrite(
        &parse(line.as_bytes()),
        line.as_bytes(),
        &Rewrite { key, ttl },
        &mut out,
    );
    assert_eq!(done, out.len() > 1);
    done.then(|| String::from_utf8(out.split_off(1)).unwrap())
}

#[test]
fn a_rewrite_changes_only_key_expiry_and_quietness() {
    let (same, key, ttl) = ((None, None), (Some(&b"other"[..]), None), (None, Some(60)));
    let both = (Some(&b"other"[..]), Some(-1));
    let rows = [
        ("get a\r\n", same, "get a\r\n"),
        ("get a\r\n", both, "get other\r\n"),
        ("gat 10 a\r\n", both, "gat -1 other\r\n"),
        ("gat 10 a b\r\n", ttl, "gat 60 a b\r\n"),
        ("set a 1 2 3\n", same, "set a 1 2 3\n"),
        ("set a 1 2 3 noreply\r\n", same, "set a 1 2 3\r\n"),
        ("set  a 1 2 3   noreply \r\n", both, "set  other 1 -1 3 \r\n"),
        ("cas a 1 2 3 4 noreply\r\n", ttl, "cas a 1 60 3 4\r\n"),
        ("touch a 5\r\n", both, "touch other -1\r\n"),
        ("incr a 5 noreply\r\n", both, "incr other 5\r\n"),
        ("delete a 0 noreply\r\n", both, "delete other 0\r\n"),
        ("flush_all 5 noreply\r\n", ttl, "flush_all 5\r\n"),
        ("verbosity 1 noreply noreply \n", both, "verbosity 1 \n"),
        ("mg a v\r\n", both, "mg other v\r\n"),
        ("mg a v q k\r\n", key, "mg other v k\r\n"),
        ("mg a T5 N6 q\r\n", ttl, "mg a T60 N60\r\n"),
        ("mg a q T5\r\n", ttl, "mg a T60\r\n"),
        ("ms a 3\r\n", ttl, "ms a 3 T60\r\n"),
        ("ms a 3 T5\r\n", both, "ms other 3 T-1\r\n"),
        ("ms a 3 q c\n", ttl, "ms a 3 c T60\n"),
        ("ms a 3 N5 MA\r\n", ttl, "ms a 3 N60 MA T60\r\n"),
        ("ms Zm9v 3 b q\r\n", both, "ms b3RoZXI= 3 b T-1\r\n"),
        ("md a q I T5\r\n", both, "md other I T5\r\n"),
        ("ma a N5 q\r\n", ttl, "ma a N60\r\n"),
        ("ma a\r\n", both, "ma other\r\n"),
        ("me Zm9v b\r\n", key, "me b3RoZXI= b\r\n"),
        ("mn\r\n", both, "mn\r\n"),
    ];
    each_row(rows, |&(line, (key, ttl), expected)| {
        assert_eq!(rewritten(line, key, ttl).as_deref(), Some(expected), "{line}");
    });
}

#[test]
fn a_rewrite_to_a_line_that_memcached_misreads_is_refused() {
    let keys = [&b""[..], b"a b", b"a\r", b"a\n", b"a\0b", &[b'k'; 251]];
    each_row(keys, |key| {
        assert_eq!(rewritten("get a\r\n", Some(key), None), None, "{key:?}");
    });
    assert!(rewritten("get a\r\n", Some(&[b'k'; 250]), None).is_some());
    assert_eq!(rewritten("delete a\r\n", Some(b"noreply"), None), None);
    // In base64 a key may have any byte, but fewer of them.
    assert_eq!(
        rewritten("mg Zm9v b\r\n", Some(b"a b\n"), None).as_deref(),
        Some("mg YSBiCg== b\r\n")
    );
    assert!(rewritten("mg Zm9v b\r\n", Some(&[b'k'; 186]), None).is_some());
    assert_eq!(rewritten("mg Zm9v b\r\n", Some(&[b'k'; 187]), None), None);
    assert_eq!(rewritten("mg Zm9v b\r\n", Some(b""), None), None);
    // A line has nineteen words at most. A missing flag cannot be added then, while an existing one can be
    // changed.
    let full = "ms a 3 c k s t v f h l u x1 d e g i j p\r\n";
    assert_eq!(rewritten(full, None, Some(1)), None);
    assert!(rewritten(&full.replace(" u", " T5"), None, Some(1)).is_some());
    assert!(rewritten(&full.replace(" u", " q"), None, Some(1)).is_some());
}

proptest! {
    #[test]
    fn a_rewritten_request_reads_as_intended(
        line in prop_oneof![
            Just("get a\r\n"), Just("gats 5 a\r\n"), Just("set a 1 2 3 noreply\r\n"), Just("mg a T1 q k\r\n"),
            Just("ms a 3 c\r\n"), Just("mg Zm9v b q v\r\n"), Just("ms Zm9v 3 q b T9\r\n"), Just("delete a 0 noreply\r\n"),
        ],
        new in "[!-~]{1,186}",
        ttl in any::<i64>(),
    ) {
        let old = parse(line.as_bytes());
        let result = rewritten(line, Some(new.as_bytes()), Some(ttl)).unwrap();
        let read = parse(result.as_bytes());
        prop_assert_eq!((read.command, read.class, read.body), (old.command, old.class, old.body));
        prop_assert!(!read.is_quiet && read.base64_key == old.base64_key);
        let mut scratch = [0; 250];
        prop_assert_eq!(key(&read, result.as_bytes(), &mut scratch), new.as_bytes());
        let has_ttl = !old.ttl.is_empty() || line.starts_with("ms");
        let expected = if has_ttl { ttl.clamp(i32::MIN.into(), i32::MAX.into()).to_string() } else { String::new() };
        prop_assert_eq!(read.ttl.of(result.as_bytes()), expected.as_bytes());
    }
}
