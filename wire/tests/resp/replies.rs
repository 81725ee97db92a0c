//! Replies of every type, their parts, and pushes among them.

use proxima_wire::{
    message::{Message, Outcome, Parse, Parsed, Reply},
    resp::{Expect, reply, whole},
};

use crate::session::{Said, said};

/// The only message in these bytes.
fn one(text: &str) -> (Outcome, usize) {
    let mut parse = Parse::default();
    match reply(&mut parse, Expect::Reply, text.as_bytes()) {
        Parsed::Head(Message::Last(reply)) => {
            assert!(parse.is_new(), "{text:?}");
            (reply.outcome, reply.len() as usize)
        }
        other => panic!("{text:?}: {other:?}"),
    }
}

const VALUES: [(&str, Outcome); 31] = [
    ("+OK\r\n", Outcome::Ok),
    ("-ERR no\r\n", Outcome::ClientError),
    ("-LOADING wait\r\n", Outcome::Busy),
    (":12\r\n", Outcome::Found),
    (":-1\r\n", Outcome::Found),
    ("$3\r\nabc\r\n", Outcome::Found),
    ("$0\r\n\r\n", Outcome::Found),
    ("$-1\r\n", Outcome::NotFound),
    ("*-1\r\n", Outcome::NotFound),
    ("_\r\n", Outcome::NotFound),
    ("*0\r\n", Outcome::Found),
    ("*2\r\n$-1\r\n-ERR in it\r\n", Outcome::Found),
    ("*2\r\n*1\r\n*1\r\n*0\r\n:1\r\n", Outcome::Found),
    ("%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", Outcome::Found),
    ("~2\r\n+a\r\n+b\r\n", Outcome::Found),
    ("#t\r\n", Outcome::Found),
    (",3.25\r\n", Outcome::Found),
    (",inf\r\n", Outcome::Found),
    ("(3492890328409238509324850943850943825024385\r\n", Outcome::Found),
    ("=8\r\ntxt:text\r\n", Outcome::Found),
    ("!21\r\nSYNTAX invalid syntax\r\n", Outcome::ClientError),
    ("|1\r\n+ttl\r\n:3600\r\n*1\r\n+a\r\n", Outcome::Found),
    ("|1\r\n+ttl\r\n:3600\r\n_\r\n", Outcome::NotFound),
    ("*2\r\n|1\r\n+a\r\n+b\r\n:1\r\n:2\r\n", Outcome::Found),
    ("$?\r\n;4\r\nabcd\r\n;1\r\ne\r\n;0\r\n", Outcome::Found),
    ("*?\r\n:1\r\n*2\r\n:2\r\n:3\r\n.\r\n", Outcome::Found),
    ("%?\r\n+a\r\n:1\r\n.\r\n", Outcome::Found),
    ("*2\r\n*?\r\n.\r\n:1\r\n", Outcome::Found),
    ("*1\r\n$?\r\n;1\r\na\r\n;0\r\n", Outcome::Found),
    ("%0\r\n", Outcome::Found),
    ("~0\r\n", Outcome::Found),
];

#[test]
fn every_type_is_read_to_its_end_and_no_further() {
    for (text, outcome) in VALUES {
        assert_eq!(one(text), (outcome, text.len()), "{text:?}");
        assert_eq!(
            one(&format!("{text}+next\r\n")),
            (outcome, text.len()),
            "{text:?}"
        );
        for end in 0..text.len() {
            let mut parse = Parse::default();
            let parsed = reply(&mut parse, Expect::Reply, &text.as_bytes()[..end]);
            assert_eq!(parsed, Parsed::More, "{:?}", &text[..end]);
        }
        if let Some(reply) = whole(text.as_bytes()) {
            assert_eq!(reply, Reply::new(outcome, text.len()), "{text:?}");
        }
    }
}

#[test]
fn values_in_a_list_are_the_same_for_any_split() {
    let mut text = format!("*{}\r\n", VALUES.len());
    VALUES.iter().for_each(|(value, _)| text.push_str(value));
    for size in 1..60 {
        let said = said(Expect::Reply, text.as_bytes().chunks(size));
        assert_eq!(
            said,
            [Said::Reply(Outcome::Found, text.clone().into())],
            "in pieces of {size}"
        );
    }
}

#[test]
fn nonsense_is_no_reply() {
    for text in [
        "hello\r\n",
        "+OK\rx",
        "$3\r\nabcd\r\n",
        "$-2\r\n",
        "$x\r\n",
        "*-2\r\n",
        "*1x\r\n",
        "*999999999\r\n",
        "%999999999\r\n",
        ".\r\n",
        ";1\r\n",
        "*?\r\n*?\r\n",
        "$?\r\n:1\r\n",
        "*1\r\n.\r\n",
        "_x\r\r",
    ] {
        let mut parse = Parse::default();
        let parsed = reply(&mut parse, Expect::Reply, text.as_bytes());
        assert!(
            matches!(parsed, Parsed::Bad(bad) if bad.close),
            "{text:?}: {parsed:?}"
        );
        assert!(parse.is_new(), "{text:?}");
    }
    let endless = [b"+".to_vec(), b"x".repeat(70_000)].concat();
    let parsed = reply(&mut Parse::default(), Expect::Reply, &endless);
    assert!(matches!(parsed, Parsed::Bad(_)));
}

#[test]
fn a_deep_and_long_reply_is_relayed_in_bounded_parts() {
    let deep = [b"*1\r\n".repeat(10_000), b":1\r\n".to_vec()].concat();
    let long = [b"*20000\r\n".to_vec(), b"$5\r\nvalue\r\n".repeat(20_000)].concat();
    let wide = format!(
        "*3\r\n$200000\r\n{0}\r\n$70000\r\n{1}\r\n$100000\r\n{1}{2}\r\n",
        "a".repeat(200_000),
        "b".repeat(70_000),
        "c".repeat(30_000)
    );
    for text in [deep, long, wide.into_bytes()] {
        for size in [1000, 16 * 1024, 200_000] {
            let said = said(Expect::Reply, text.chunks(size));
            assert!(said == [Said::Reply(Outcome::Found, text.clone())], "{size}");
        }
    }
}

#[test]
fn a_large_string_is_returned_before_it_has_come() {
    for (text, head) in [("$100000\r\nabc", 9), ("*2\r\n:1\r\n$100000\r\nabc", 17)] {
        let parsed = reply(&mut Parse::default(), Expect::Reply, text.as_bytes());
        let Parsed::Head(Message::Last(reply)) = parsed else {
            panic!("{text:?}: {parsed:?}")
        };
        assert_eq!((reply.head, reply.body), (head, 100_002), "{text:?}");
    }
}

#[test]
fn pushes_are_told_from_replies_even_between_the_parts_of_one() {
    let push = ">2\r\n+invalidate\r\n*1\r\n+k\r\n";
    for (text, replies) in [
        (format!("{push}+OK\r\n{push}"), vec!["+OK\r\n".to_owned()]),
        (
            format!("*2\r\n:1\r\n{push}:2\r\n{push}"),
            vec!["*2\r\n:1\r\n:2\r\n".to_owned()],
        ),
        (format!("{push}{push}-ERR no\r\n"), vec!["-ERR no\r\n".to_owned()]),
    ] {
        for size in 1..text.len() {
            let said = said(Expect::Reply, text.as_bytes().chunks(size));
            let pushes = said
                .iter()
                .filter(|said| **said == Said::Push(push.into()))
                .count();
            let others: Vec<_> = said
                .into_iter()
                .filter_map(|said| match said {
                    Said::Reply(_, bytes) => Some(String::from_utf8(bytes).unwrap()),
                    Said::Push(_) => None,
                })
                .collect();
            assert_eq!((pushes, &others), (2, &replies), "{text:?} in pieces of {size}");
        }
    }
}

#[test]
fn push_of_any_length_comes_in_parts_and_the_reply_behind_it_is_itself() {
    let long = format!(
        ">3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$200000\r\n{}\r\n",
        "x".repeat(200_000)
    );
    let many = format!(
        ">2\r\n$10\r\ninvalidate\r\n*40000\r\n{}",
        "$1\r\nk\r\n".repeat(40_000)
    );
    for push in [long, many] {
        let text = format!("{push}$1\r\na\r\n{push}");
        for size in [1, 999, 70_000, text.len()] {
            let said = said(Expect::Reply, text.as_bytes().chunks(size));
            let expected = [
                Said::Push(push.clone().into()),
                Said::Reply(Outcome::Found, "$1\r\na\r\n".into()),
                Said::Push(push.clone().into()),
            ];
            assert!(said == expected, "in pieces of {size}");
        }
    }
}

#[test]
fn push_without_an_end_is_never_kept() {
    let (mut parse, mut buffer, mut passed) = (Parse::default(), b">268435455\r\n".to_vec(), 0);
    for _ in 0..100 {
        buffer.extend(b":1\r\n".repeat(5_000));
        while let Parsed::Head(message) = reply(&mut parse, Expect::Nothing, &buffer) {
            let Message::PushPart(part) = message else {
                panic!("{message:?}")
            };
            passed += buffer.drain(..part.len() as usize).len();
        }
        assert!(buffer.len() <= 8 * 1024 + 4, "{} bytes are kept", buffer.len());
    }
    assert!(passed > 1_900_000, "{passed}");
}

#[test]
fn an_error_behind_a_push_keeps_its_meaning() {
    let text = ">2\r\n+a\r\n*1\r\n+k\r\n-LOADING x\r\n";
    let said = said(Expect::Reply, [text.as_bytes()]);
    assert!(matches!(&said[1], Said::Reply(Outcome::Busy, _)), "{said:?}");
}

#[test]
fn a_transaction_is_one_reply() {
    for (count, text, outcome) in [
        (
            4,
            "+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n-ERR in it\r\n$1\r\na\r\n",
            Outcome::Found,
        ),
        (2, "+OK\r\n*0\r\n", Outcome::Found),
        (3, "+OK\r\n+QUEUED\r\n*-1\r\n", Outcome::NotFound),
        (3, "+OK\r\n+QUEUED\r\n_\r\n", Outcome::NotFound),
        (
            3,
            "+OK\r\n-OOM no memory\r\n-EXECABORT Transaction discarded\r\n",
            Outcome::ClientError,
        ),
        (
            3,
            "-LOADING wait\r\n-LOADING wait\r\n-ERR EXEC without MULTI\r\n",
            Outcome::ClientError,
        ),
        (3, "+OK\r\n+QUEUED\r\n*1\r\n*2\r\n:1\r\n$-1\r\n", Outcome::Found),
        // MULTI is refused, and what follows is executed: its replies may look like the last one.
        (
            5,
            "-NOPERM no\r\n$1\r\na\r\n-EXECABORT x\r\n:1\r\n-ERR EXEC without MULTI\r\n",
            Outcome::ClientError,
        ),
    ] {
        for size in 1..text.len() {
            let said = said(Expect::Replies(count), text.as_bytes().chunks(size));
            assert_eq!(
                said,
                [Said::Reply(outcome, text.into())],
                "{text:?} in pieces of {size}"
            );
        }
    }
}
