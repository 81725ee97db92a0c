//! The messages are the same wherever the bytes are cut, and no bytes make the codec panic.

use crate::capture;
use crate::session::{Message, messages};
use proptest::collection::vec;
use proptest::prelude::*;
use proxima_wire::memcache::{
    Command, LINE, Limits, Rewrite, default_reply, is_reply_whole, key, keys, mark_reply, mark_request,
    reply, request, rewrite, rewrite_reply_key, single,
};
use proxima_wire::message::Parsed;
use std::sync::LazyLock;

const LIMITS: Limits = Limits {
    value: 1 << 20,
    mcrouters: true,
};

/// All captured requests of usual size that leave the connection open, as one client would send them.
static STREAM: LazyLock<Vec<Vec<u8>>> = LazyLock::new(|| {
    let files = ["text.txt", "meta.txt", "miss.txt", "refused.txt"];
    let open = files
        .into_iter()
        .flat_map(capture::read)
        .filter(|exchange| !exchange.closed);
    open.map(|exchange| exchange.request)
        .filter(|request| request.len() < 5000 && !is_taken_key_by_key(request))
        .collect()
});

/// Whether these bytes have a retrieval line that is longer than others may be. Such a line is read as it
/// comes, so its head depends on how much has come.
fn is_taken_key_by_key(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|&byte| byte == b'\n');
    lines.any(|line| {
        line.len() >= LINE
            && [&b"g"[..], b"lease-get", b"metaget"]
                .iter()
                .any(|word| line.starts_with(word))
    })
}

fn pieces<'a>(bytes: &'a [u8], sizes: &'a [usize]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = bytes;
    let mut sizes = sizes.iter().copied().cycle();
    std::iter::from_fn(move || {
        let size = sizes.next()?.min(rest.len());
        let (piece, after) = rest.split_at(size);
        rest = after;
        (size > 0).then_some(piece)
    })
}

#[test]
fn captured_requests_in_one_stream_are_one_message_each() {
    let bytes = STREAM.concat();
    assert_eq!(messages([&bytes[..]], &LIMITS).len(), STREAM.len());
    assert_eq!(
        messages(bytes.chunks(1), &LIMITS),
        messages([&bytes[..]], &LIMITS)
    );
}

/// Bytes that resemble the protocol.
fn noise() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        9 => (0..Command::ALL.len()).prop_map(|number| Command::ALL[number].name().as_bytes().to_vec()),
        9 => "[0-9]{1,20}".prop_map(String::into_bytes),
        9 => "[a-zA-Z=]{1,8}".prop_map(String::into_bytes),
        9 => Just(b"noreply".to_vec()),
        9 => vec(any::<u8>(), 0..6),
        1 => Just(vec![b'k'; 2000]),
    ];
    let blank = prop_oneof![8 => Just(&b" "[..]), 1 => Just(&b"  "[..]), 2 => Just(&b"\r\n"[..]), 1 => Just(&b"\n"[..])];
    vec((word, blank), 0..40).prop_map(|words| {
        words
            .iter()
            .flat_map(|(word, blank)| [&word[..], blank].concat())
            .collect()
    })
}

fn try_everything(bytes: &[u8]) {
    let change = Rewrite {
        key: Some(b"other"),
        ttl: Some(5),
    };
    let mut out = Vec::new();
    if let Parsed::Head(request) = request(bytes, &LIMITS) {
        assert!(
            request.key.end() <= request.head as usize && request.more_keys.end() <= request.head as usize
        );
        key(&request, bytes, &mut [0; 250]);
        for key in keys(&request, bytes) {
            single(&request, bytes, key.of(bytes), &mut out);
        }
        let _ = rewrite(&request, bytes, &change, &mut out);
        default_reply(&request, bytes, &mut out);
        let _ = mark_request(&request, bytes, 7, &mut out);
    }
    for &command in Command::ALL {
        if let Parsed::Head(reply) = reply(command, bytes) {
            is_reply_whole(&reply, bytes);
        }
        rewrite_reply_key(command, b"own", bytes, &mut out);
        let _ = mark_reply(command, bytes, 7, &mut out);
    }
}

proptest! {
    #[test]
    fn captured_requests_are_the_same_messages_for_any_split(sizes in vec(1_usize..200, 1..50)) {
        let bytes = STREAM.concat();
        prop_assert_eq!(messages(pieces(&bytes, &sizes), &LIMITS), messages([&bytes[..]], &LIMITS));
    }

    #[test]
    fn noise_is_the_same_messages_for_any_split(bytes in noise(), sizes in vec(1_usize..50, 1..50)) {
        prop_assume!(!is_taken_key_by_key(&bytes));
        let whole = messages([&bytes[..]], &LIMITS);
        prop_assert_eq!(messages(pieces(&bytes, &sizes), &LIMITS), whole);
    }

    #[test]
    fn a_parsed_request_does_not_change_with_more_bytes(bytes in noise(), more in vec(any::<u8>(), 0..100)) {
        prop_assume!(!is_taken_key_by_key(&bytes));
        let first = request(&bytes, &LIMITS);
        if first != Parsed::More {
            prop_assert_eq!(request(&[&bytes[..], &more].concat(), &LIMITS), first);
        }
    }

    #[test]
    fn noise_never_panics_the_codec(bytes in noise()) {
        try_everything(&bytes);
    }

    #[test]
    fn random_bytes_never_panic_the_codec(bytes in vec(any::<u8>(), 0..300)) {
        try_everything(&bytes);
    }
}

#[test]
fn messages_contain_exactly_their_bytes() {
    let bytes = b"get a\r\nset a 0 0 3\r\nx\r\n\r\nset a 0 0 9999999\r\n";
    let messages = messages([&bytes[..]], &LIMITS);
    let Ok([Message::Good(_, get), Message::Good(_, set)]) = <[_; 2]>::try_from(messages) else {
        panic!()
    };
    assert_eq!(
        (&get[..], &set[..]),
        (&b"get a\r\n"[..], &b"set a 0 0 3\r\nx\r\n\r\n"[..])
    );
}
