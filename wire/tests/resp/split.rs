//! The same messages for any split of the bytes, and no panic on any bytes.

use std::sync::LazyLock;

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_assert, prop_assert_eq, prop_oneof, proptest},
};
use proxima_wire::{
    message::{Parse, Parsed},
    resp::{Args, Expect, frame, inline, reply, rest},
};

use crate::{
    capture,
    session::{Asked, LIMITS, requests, said},
};

fn captured(part: fn(capture::Exchange) -> Vec<u8>) -> Vec<u8> {
    let files = ["resp2.txt", "resp3.txt", "push3.txt"];
    let all = files
        .into_iter()
        .flat_map(|file| capture::read(&format!("resp/{file}")));
    all.filter(|exchange| exchange.reply.len() + exchange.request.len() < 20_000)
        .flat_map(part)
        .collect()
}

static ASKED: LazyLock<Vec<u8>> = LazyLock::new(|| captured(|exchange| exchange.request));
static SAID: LazyLock<Vec<u8>> = LazyLock::new(|| captured(|exchange| exchange.reply));

fn pieces<'a>(bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().copied().cycle();
    std::iter::from_fn(move || {
        let (piece, after) = rest.split_at(sizes.next()?.min(rest.len()));
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}

/// Bytes that resemble the protocol.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        8 => "[*$+:_#,(=!%~|>;.-]".prop_map(String::into_bytes),
        8 => "[0-9]{1,2}".prop_map(String::into_bytes),
        1 => "-?[0-9]{1,22}".prop_map(String::into_bytes),
        2 => "[a-zA-Z\"' ]{1,8}".prop_map(String::into_bytes),
        16 => Just(b"\r\n".to_vec()),
        1 => vec(any::<u8>(), 0..6),
        1 => Just(vec![b'v'; 20_000]),
    ];
    vec(word, 0..60).prop_map(|words| words.concat())
}

/// A valid value of any type, nested.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        "[a-z]{0,20}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
        (0_usize..30_000).prop_map(|len| format!("${len}\r\n{}\r\n", "v".repeat(len))),
        Just("$-1\r\n".to_owned()),
        Just("_\r\n".to_owned()),
        Just("-ERR x\r\n".to_owned()),
        any::<i64>().prop_map(|number| format!(":{number}\r\n")),
        vec("[a-z]{1,9}", 0..4).prop_map(|chunks| {
            let all: String = chunks
                .iter()
                .map(|chunk| format!(";{}\r\n{chunk}\r\n", chunk.len()))
                .collect();
            format!("$?\r\n{all};0\r\n")
        }),
    ];
    leaf.prop_recursive(5, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(|all| format!("*{}\r\n{}", all.len(), all.concat())),
            vec(inner.clone(), 0..6).prop_map(|all| format!("~{}\r\n{}", all.len(), all.concat())),
            vec((inner.clone(), inner.clone()), 0..3).prop_map(|all| {
                let pairs: String = all.iter().flat_map(|(a, b)| [a.as_str(), b]).collect();
                format!("%{}\r\n{pairs}", all.len())
            }),
            (inner.clone(), inner.clone(), inner).prop_map(|(a, b, c)| format!("|1\r\n{a}{b}{c}")),
        ]
    })
}

proptest! {
    #[test]
    fn captured_requests_are_the_same_messages_for_any_split(sizes in vec(1_usize..200, 1..50)) {
        let whole = requests([&ASKED[..]], &LIMITS);
        prop_assert!(requests(pieces(&ASKED, &sizes), &LIMITS) == whole);
    }

    #[test]
    fn captured_replies_are_the_same_messages_for_any_split(sizes in vec(1_usize..200, 1..50)) {
        let whole = said(Expect::Reply, [&SAID[..]]);
        prop_assert!(said(Expect::Reply, pieces(&SAID, &sizes)) == whole);
    }

    #[test]
    fn nested_values_are_one_reply_for_any_split(value in value(), sizes in vec(1_usize..5000, 1..20)) {
        let whole = said(Expect::Reply, [value.as_bytes()]);
        prop_assert_eq!(whole.len(), 1);
        prop_assert!(said(Expect::Reply, pieces(value.as_bytes(), &sizes)) == whole);
    }

    #[test]
    fn noise_is_the_same_requests_for_any_split(bytes in noise(), sizes in vec(1_usize..50, 1..50)) {
        let whole = requests([&bytes[..]], &LIMITS);
        prop_assert!(requests(pieces(&bytes, &sizes), &LIMITS) == whole);
    }

    #[test]
    fn arguments_of_a_request_fill_it(bytes in noise()) {
        for asked in requests([&bytes[..]], &LIMITS) {
            let Asked::Good(frame, message) = asked else { continue };
            let mut array = Vec::new();
            let message = match frame.args {
                0 => {
                    prop_assert!(inline::append_array(&message[..message.len() - 1], &mut array));
                    &array
                }
                _ => &message,
            };
            let mut args = Args::of(message);
            while args.next().is_some() {}
            prop_assert_eq!(args.position(), message.len());
        }
    }

    #[test]
    fn no_bytes_make_the_codec_panic(bytes in noise(), seen in 0_u32..100, left in 0_u32..5, open in 0_u32..2) {
        let parse = Parse { seen, left, progress: [left, open] };
        let _ = frame(&mut parse.clone(), &bytes, &LIMITS);
        if left > 0 {
            let _ = rest(&mut parse.clone(), &bytes, &LIMITS);
        }
        for expect in [Expect::Reply, Expect::Replies(3), Expect::Subscriber, Expect::Nothing] {
            let (mut parse, mut at) = (Parse::default(), 0);
            while let Parsed::Head(message) = reply(&mut parse, expect, &bytes[at..]) {
                let head = message.head();
                prop_assert!(head.head > 0);
                at += head.len() as usize;
                if at > bytes.len() {
                    break;
                }
            }
        }
    }
}
