//! Request lines, and the parts that the codec reads from them.

use crate::rows::each_row;
use proxima_wire::memcache::{
    Command, KEY, LINE, Limits, is_valid_key, is_value_end, key, keys, request, single, take_key,
};
use proxima_wire::message::{Bad, NextKey, Parsed, Request};

/// The parts that were read from a line, without the absent ones, as a line of text.
fn show(line: &[u8]) -> String {
    let request = match request(line, &Limits::default()) {
        Parsed::Head(request) => request,
        Parsed::More => return "more".into(),
        Parsed::Bad(bad) => return format!("{:?}", bad.reply.escape_ascii().to_string()),
    };
    assert_eq!(request.head as usize, line.len());
    let Request {
        command,
        class,
        body,
        key,
        more_keys,
        ttl,
        quiet,
        is_quiet,
        base64_key,
        ..
    } = request;
    assert_eq!(is_quiet, !quiet.is_empty());
    let mut text = format!("{:?} {class:?}", Command::from_number(command).unwrap());
    for (name, span) in [("key", key), ("more", more_keys), ("ttl", ttl), ("quiet", quiet)] {
        if !span.is_empty() {
            text += &format!(" {name}={:?}", span.of(line).escape_ascii().to_string());
        }
    }
    if body > 0 {
        text += &format!(" body={body}");
    }
    text + if base64_key { " base64" } else { "" }
}

#[test]
fn request_lines_are_read_with_all_their_parts() {
    let rows = [
        ("get a\r\n", r#"Get Read key="a""#),
        ("get a\n", r#"Get Read key="a""#),
        ("get a b  c \r\n", r#"Get Read key="a" more="b  c""#),
        ("gets   a\r\n", r#"Gets Read key="a""#),
        ("gat 10 a\r\n", r#"Gat Touch key="a" ttl="10""#),
        ("gats -1 a b\r\n", r#"Gats Touch key="a" more="b" ttl="-1""#),
        ("set a 1 2 3\r\n", r#"Set Write key="a" ttl="2" body=5"#),
        ("set a 1 2 0\r\n", r#"Set Write key="a" ttl="2" body=2"#),
        (
            "set a 1 2 3 noreply\r\n",
            r#"Set Write key="a" ttl="2" quiet=" noreply" body=5"#,
        ),
        (
            "set a 1 2 3   noreply  \r\n",
            r#"Set Write key="a" ttl="2" quiet="   noreply" body=5"#,
        ),
        ("set a 1 2 3 noreplyx\r\n", r#"Set Write key="a" ttl="2" body=5"#),
        (
            "add a 1 2 67108864\r\n",
            r#"Add Write key="a" ttl="2" body=67108866"#,
        ),
        ("replace a 1 2 3\r\n", r#"Replace Write key="a" ttl="2" body=5"#),
        ("append a 1 2 3\r\n", r#"Append Write key="a" ttl="2" body=5"#),
        ("prepend a 1 2 3\r\n", r#"Prepend Write key="a" ttl="2" body=5"#),
        ("cas a 1 2 3 4\r\n", r#"Cas Write key="a" ttl="2" body=5"#),
        (
            "cas a 1 2 3 4 noreply\r\n",
            r#"Cas Write key="a" ttl="2" quiet=" noreply" body=5"#,
        ),
        ("delete a\r\n", r#"Delete Delete key="a""#),
        ("delete a 0\r\n", r#"Delete Delete key="a""#),
        (
            "delete a noreply\r\n",
            r#"Delete Delete key="a" quiet=" noreply""#,
        ),
        (
            "delete a 0 noreply\r\n",
            r#"Delete Delete key="a" quiet=" noreply""#,
        ),
        ("delete noreply 0\r\n", r#"Delete Delete key="noreply""#),
        (
            "delete noreply\r\n",
            r#""CLIENT_ERROR bad command line format.  Usage: delete <key> [noreply]\\r\\n""#,
        ),
        ("delete noreply noreply\r\n", r#""""#),
        (
            "delete noreply 0 noreply\r\n",
            r#"Delete Delete key="noreply" quiet=" noreply""#,
        ),
        ("incr a 5\r\n", r#"Incr Arithmetic key="a""#),
        (
            "decr a 5 noreply\r\n",
            r#"Decr Arithmetic key="a" quiet=" noreply""#,
        ),
        ("touch a 60\r\n", r#"Touch Touch key="a" ttl="60""#),
        (
            "touch a 60 noreply\r\n",
            r#"Touch Touch key="a" ttl="60" quiet=" noreply""#,
        ),
        ("flush_all\r\n", "FlushAll Admin"),
        ("flush_all 30\r\n", "FlushAll Admin"),
        ("flush_all noreply\r\n", r#"FlushAll Admin quiet=" noreply""#),
        ("flush_all 30 noreply\r\n", r#"FlushAll Admin quiet=" noreply""#),
        ("verbosity 1 noreply\r\n", r#"Verbosity Admin quiet=" noreply""#),
        (
            "verbosity 1 noreply x noreply  noreply \r\n",
            r#"Verbosity Admin quiet=" noreply  noreply""#,
        ),
        ("verbosity 1 noreply x\r\n", "Verbosity Admin"),
        ("version\r\n", "Version Admin"),
        ("stats\r\n", "Stats Admin"),
        ("stats conns\r\n", "Stats Admin"),
        ("config get cluster\r\n", "Config Admin"),
        ("shutdown graceful\r\n", "Shutdown Admin"),
        ("quit\r\n", "Quit Session"),
        ("mg a\r\n", r#"MetaGet Read key="a""#),
        ("mg a v t R30\r\n", r#"MetaGet Read key="a""#),
        ("mg a v T30\r\n", r#"MetaGet Touch key="a" ttl="30""#),
        ("mg a v N30\r\n", r#"MetaGet Write key="a" ttl="30""#),
        ("mg a N30 T60\r\n", r#"MetaGet Write key="a" ttl="60""#),
        ("mg a T60 N30\r\n", r#"MetaGet Write key="a" ttl="60""#),
        ("mg a v  q k\r\n", r#"MetaGet Read key="a" quiet="  q""#),
        ("mg Zm9v b\r\n", r#"MetaGet Read key="Zm9v" base64"#),
        ("mg a z 9xyz\r\n", r#"MetaGet Read key="a""#),
        ("ms a 3\r\n", r#"MetaSet Write key="a" body=5"#),
        (
            "ms a 3 T-1 q\r\n",
            r#"MetaSet Write key="a" ttl="-1" quiet=" q" body=5"#,
        ),
        ("ms Zm9v 0 b\r\n", r#"MetaSet Write key="Zm9v" body=2 base64"#),
        ("md a q\r\n", r#"MetaDelete Delete key="a" quiet=" q""#),
        ("md a I T30\r\n", r#"MetaDelete Delete key="a" ttl="30""#),
        ("ma a N0 J5\r\n", r#"MetaArithmetic Arithmetic key="a" ttl="0""#),
        ("mn\r\n", "MetaNoop Session"),
        ("me Zm9v b\r\n", r#"MetaDebug Admin key="Zm9v" base64"#),
        ("me Zm9v k b\r\n", r#"MetaDebug Admin key="Zm9v""#),
    ];
    each_row(rows, |&(line, expected)| {
        assert_eq!(show(line.as_bytes()), expected, "{line:?}");
    });
}

#[test]
fn mcrouters_own_commands_are_read_where_they_are_taken() {
    let limits = Limits {
        mcrouters: true,
        ..Limits::default()
    };
    let rows = [
        ("lease-get a\r\n", "lease-get", "a", 0, false),
        ("metaget a b\r\n", "metaget", "a", 0, false),
        ("lease-set a 7 1 2 3\r\n", "lease-set", "a", 5, false),
        (
            "lease-set a 18446744073709551615 1 -1 0 noreply\r\n",
            "lease-set",
            "a",
            2,
            true,
        ),
    ];
    each_row(rows, |&(line, name, key, body, is_quiet)| {
        let Parsed::Head(read) = request(line.as_bytes(), &limits) else {
            panic!("{line:?}")
        };
        let command = Command::by_name(name).unwrap();
        assert_eq!(
            (read.command, read.class),
            (command as u16, command.class()),
            "{line:?}"
        );
        assert_eq!(read.key.of(line.as_bytes()), key.as_bytes(), "{line:?}");
        assert_eq!((read.body, read.is_quiet), (body, is_quiet), "{line:?}");
        assert_eq!(read.needs_proof, name == "lease-set", "{line:?}");
        // Elsewhere they are unknown words, as for memcached.
        let reply: &[u8] = if is_quiet { b"" } else { b"ERROR\r\n" };
        let unknown = Parsed::Bad(Bad::refused(line.len(), reply));
        assert_eq!(request(line.as_bytes(), &Limits::default()), unknown, "{line:?}");
    });
    for line in ["mg a v\r\n", "md a\r\n", "ma a\r\n", "me a\r\n", "ms a 1\r\n"] {
        for (limits, needs_proof) in [(&limits, true), (&Limits::default(), false)] {
            let read = request(line.as_bytes(), limits);
            assert!(
                matches!(read, Parsed::Head(read) if read.needs_proof == needs_proof),
                "{line:?}"
            );
        }
    }
    for line in [
        "lease-set a x 0 0 3\r\n",
        "lease-set a -1 0 0 3\r\n",
        "lease-set a 0 0 3\r\n",
        "metaget\r\n",
    ] {
        assert!(
            matches!(request(line.as_bytes(), &limits), Parsed::Bad(_)),
            "{line:?}"
        );
    }
}

#[test]
fn a_value_over_the_limit_is_swallowed() {
    let limits = Limits {
        value: 100,
        ..Limits::default()
    };
    let rows = [
        ("set a 0 0 101\r\n", false),
        ("set a 0 0 101 noreply\r\n", true),
        ("ms a 101 q\r\n", false),
    ];
    each_row(rows, |&(line, quiet)| {
        let reply: &[u8] = if quiet {
            b""
        } else {
            b"SERVER_ERROR object too large for cache\r\n"
        };
        let expected = Bad {
            swallow: 103,
            ..Bad::refused(line.len(), reply)
        };
        assert_eq!(request(line.as_bytes(), &limits), Parsed::Bad(expected), "{line}");
    });
    assert!(matches!(request(b"set a 0 0 100\r\n", &limits), Parsed::Head(_)));
}

#[test]
fn an_endless_request_line_closes_the_connection_unless_it_is_a_get() {
    let limits = Limits::default();
    let closes = |bytes: &[u8]| matches!(request(bytes, &limits), Parsed::Bad(Bad { close: true, .. }));
    assert_eq!(request(b"", &limits), Parsed::More);
    assert_eq!(request(&[b'x'; LINE], &limits), Parsed::More);
    assert!(closes(&[b'x'; LINE + 1]));
    let rows = [
        ("get ", true),
        ("gets ", true),
        ("gat 0 ", true),
        ("gats 0 ", true),
        ("delete ", false),
        ("mg ", false),
    ];
    each_row(rows, |&(word, is_long)| {
        let mut line = word.as_bytes().to_vec();
        line.resize(LINE + 1, b'k');
        assert_eq!(closes(&line), !is_long, "{word}");
        line.resize(1 << 20, b'k');
        assert_eq!(closes(&line), !is_long, "{word}");
    });
    let blanks = [b"get".to_vec(), vec![b' '; LINE]].concat();
    assert!(closes(&blanks), "no key in sight");
    let no_time = [b"gat x".to_vec(), b" k".repeat(LINE)].concat();
    assert!(closes(&no_time), "nor a time");
}

/// The keys of a line that comes in pieces of these sizes, up to the first bad key, and whether there was
/// none.
fn taken(line: &[u8], sizes: impl IntoIterator<Item = usize>) -> (Vec<String>, bool) {
    let (mut found, mut held, mut good) = (Vec::new(), Vec::new(), true);
    let (mut rest, mut sizes) = (line, sizes.into_iter());
    loop {
        let (used, more) = match take_key(&held) {
            NextKey::Key(key) => {
                found.push(String::from_utf8_lossy(key.of(&held)).into_owned());
                (key.end(), false)
            }
            NextKey::Bad(bad) => {
                good = false;
                (bad.head as usize, false)
            }
            NextKey::End(used) => {
                assert_eq!((used, rest.len()), (held.len(), 0), "the line ends where it ends");
                return (found, good);
            }
            NextKey::More(used) => (used, true),
        };
        assert!(more || used > 0, "no progress");
        held.drain(..used);
        assert!(!more || held.len() <= KEY + 1, "{} bytes are kept", held.len());
        if more {
            let size = sizes.next().unwrap_or(1).min(rest.len());
            assert!(size > 0, "it never ends");
            held.extend_from_slice(&rest[..size]);
            rest = &rest[size..];
        }
    }
}

#[test]
fn keys_of_a_long_line_are_taken_from_pieces_of_any_size() {
    let longest = "k".repeat(KEY);
    let too_long = "k".repeat(KEY + 1);
    let rows = [
        ("a\r\n".to_owned(), vec!["a"], true),
        (" a  bb c \n".to_owned(), vec!["a", "bb", "c"], true),
        ("a\tb \u{1}c\r\n".to_owned(), vec!["a\tb", "\u{1}c"], true),
        (format!("a {longest} b\r\n"), vec!["a", &longest, "b"], true),
        (format!("{}\r\n", " ".repeat(5000)), vec![], true),
        ("a\rb c\r\n".to_owned(), vec!["b", "c"], false),
        ("a\0b c\r\n".to_owned(), vec!["b", "c"], false),
    ];
    each_row(rows, |(line, expected, good)| {
        for size in [1, 2, 3, 7, 100, 10_000] {
            let found = taken(line.as_bytes(), std::iter::repeat(size));
            assert_eq!(
                found,
                (expected.iter().map(|&key| key.to_owned()).collect(), *good),
                "{line:?} by {size}"
            );
        }
    });
    for size in [1, 2, 3, 7, 100, 10_000] {
        let line = format!("a {too_long} b\r\n");
        assert!(!taken(line.as_bytes(), std::iter::repeat(size)).1, "by {size}");
    }
}

#[test]
fn a_long_get_is_a_request_before_its_end_has_come() {
    let line = [b"gat 100 first".to_vec(), b" k".repeat(LINE)].concat();
    let Parsed::Head(begun) = request(&line, &Limits::default()) else {
        panic!("it has begun")
    };
    assert_eq!(begun.head as usize, line.len());
    assert!(line[begun.key.start as usize..].starts_with(b"first "));
    assert!(!begun.more_keys.is_empty());
    let mut out = Vec::new();
    single(&begun, &line[..begun.key.start as usize], b"first", &mut out);
    assert_eq!(out, b"gat 100 first\r\n");
}

#[test]
fn a_long_get_is_taken_or_refused_alike_wherever_it_is_cut() {
    let many = " k".repeat(LINE);
    let blanks = |bytes: usize| " ".repeat(bytes);
    let rows = [
        (format!("gat 30 first{many}\r\n"), true),
        (format!("gats -1 first{many}\r\n"), true),
        // Newer servers take no plus before a time, and none of more than 32 bits.
        (format!("gat +30 first{many}\r\n"), false),
        (format!("gats 4294967296 first{many}\n"), false),
        (format!("gat x first{many}\r\n"), false),
        (format!("get{}first{many}\r\n", blanks(LINE - 4)), true),
        (format!("get{}first{many}\r\n", blanks(LINE - 3)), false),
        (format!("get{}first{many}\r\n", blanks(LINE - 2)), false),
        (format!("get{}first{many}\r\n", blanks(3 * LINE)), false),
        (format!("gat{}30 first{many}\r\n", blanks(LINE - 5)), false),
        (format!("get{}\r\n", blanks(3 * LINE)), false),
        (format!("get \0first{many}\r\n"), false),
    ];
    each_row(rows, |(line, is_taken)| {
        let line = line.as_bytes();
        let limits = Limits::default();
        let begun = request(&line[..LINE + 1], &limits);
        for len in (LINE + 1..LINE + 20).chain([line.len() - 2, line.len() - 1, line.len()]) {
            let shown = format!("{len} bytes of {}", line[..20].escape_ascii());
            match (request(&line[..len], &limits), begun) {
                (Parsed::Head(read), Parsed::Head(begun)) if *is_taken => {
                    let parts = |read: Request| (read.command, read.class, read.key.start, read.ttl);
                    assert_eq!(parts(read), parts(begun), "{shown}");
                }
                (read, begun) => {
                    assert!(
                        matches!(read, Parsed::Bad(Bad { close: true, .. })),
                        "{shown}: {read:?}"
                    );
                    assert_eq!(read, begun, "{shown}");
                }
            }
        }
    });
}

#[test]
fn a_get_of_many_keys_becomes_one_request_per_key() {
    let rows = [
        ("get a\r\n", vec!["get a\r\n"]),
        ("get  a  bb c \r\n", vec!["get a\r\n", "get bb\r\n", "get c\r\n"]),
        ("gets a a\n", vec!["gets a\r\n", "gets a\r\n"]),
        ("gat 10 a b\r\n", vec!["gat 10 a\r\n", "gat 10 b\r\n"]),
        ("gats -1 a b\r\n", vec!["gats -1 a\r\n", "gats -1 b\r\n"]),
    ];
    each_row(rows, |(line, expected)| {
        let Parsed::Head(request) = request(line.as_bytes(), &Limits::default()) else {
            panic!("{line}")
        };
        let singles: Vec<_> = keys(&request, line.as_bytes())
            .map(|key| {
                let mut out = Vec::new();
                single(&request, line.as_bytes(), key.of(line.as_bytes()), &mut out);
                String::from_utf8(out).unwrap()
            })
            .collect();
        assert_eq!(&singles, expected, "{line}");
    });
    let Parsed::Head(request) = request(b"version\r\n", &Limits::default()) else {
        panic!()
    };
    assert_eq!(keys(&request, b"version\r\n").count(), 0);
}

#[test]
fn a_get_may_have_20000_keys() {
    let names: Vec<_> = (0..20_000).map(|number| format!("key:{number}")).collect();
    let line = format!("get {}\r\n", names.join(" "));
    let Parsed::Head(request) = request(line.as_bytes(), &Limits::default()) else {
        panic!()
    };
    let keys: Vec<_> = keys(&request, line.as_bytes())
        .map(|key| key.of(line.as_bytes()))
        .collect();
    assert!(keys.into_iter().eq(names.iter().map(|name| name.as_bytes())));
}

#[test]
fn a_base64_key_is_decoded_for_routing() {
    let rows = [
        ("mg Zm9v b\r\n", "foo"),
        ("mg Zm9v k\r\n", "Zm9v"),
        ("get a b\r\n", "a"),
        ("mn\r\n", ""),
    ];
    each_row(rows, |&(line, expected)| {
        let Parsed::Head(request) = request(line.as_bytes(), &Limits::default()) else {
            panic!("{line}")
        };
        assert_eq!(
            key(&request, line.as_bytes(), &mut [0; 250]),
            expected.as_bytes(),
            "{line}"
        );
    });
}

#[test]
fn keys_with_blanks_or_control_bytes_or_251_bytes_are_invalid() {
    assert!(is_valid_key(b"a") && is_valid_key(&[b'k'; 250]) && is_valid_key("ключ".as_bytes()));
    let rows = [
        &b""[..],
        &[b'k'; 251],
        b"a b",
        b"a\r",
        b"\n",
        b"a\0",
        b"\x7f",
        b"\t",
    ];
    each_row(rows, |key| {
        assert!(!is_valid_key(key), "{key:?}");
    });
}

#[test]
fn a_value_ends_with_cr_lf() {
    assert!(is_value_end(b"\r\n"));
    assert!(!is_value_end(b"x\n") && !is_value_end(b"\n\r") && !is_value_end(b"\n"));
}
