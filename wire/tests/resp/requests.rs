//! What the codec knows of a request: its command, its keys, how long it may wait.

use proxima_wire::{
    message::{Class, Parse, Parsed, Request},
    resp::{Command, INLINE, TRANSACTION, UNKNOWN, commands, each_key, find, replies, request},
};

use crate::{rows::each_row, session::LIMITS};

/// These words as an array of bulk strings.
pub(crate) fn array(words: &str) -> Vec<u8> {
    let words: Vec<_> = words.split(' ').map(|word| word.trim_matches('_')).collect();
    let bulks = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
    format!("*{}\r\n{}", words.len(), bulks.collect::<String>()).into_bytes()
}

fn parsed(bytes: &[u8]) -> Request {
    let mut parse = Parse::default();
    match request(&mut parse, bytes, &LIMITS) {
        Parsed::Head(request) => {
            assert_eq!(parse.is_new(), !request.is_open);
            request
        }
        other => panic!("{}: {other:?}", bytes.escape_ascii()),
    }
}

fn name(number: u16) -> &'static str {
    Command::of(number).map_or("", |command| command.name)
}

#[test]
fn requests_have_the_keys_that_servers_see() {
    let rows = [
        ("GET k", "get", Class::Read, "k"),
        ("gEt k", "get", Class::Read, "k"),
        ("SET k v EX 10", "set", Class::Write, "k"),
        ("DEL k", "del", Class::Delete, "k"),
        ("DEL k l m", "del", Class::Delete, "k l m"),
        ("MSET k v l w", "mset", Class::Write, "k l"),
        ("INCR k", "incr", Class::Arithmetic, "k"),
        ("EXPIRE k 1", "expire", Class::Touch, "k"),
        ("OBJECT ENCODING k", "object|encoding", Class::Read, "k"),
        ("XREAD COUNT 2 STREAMS a b 0 0", "xread", Class::Session, "a b"),
        (
            "XREADGROUP GROUP g c STREAMS a >",
            "xreadgroup",
            Class::Session,
            "a",
        ),
        ("EVAL script 2 a b c", "eval", Class::Write, "a b"),
        ("EVAL script 0 c", "eval", Class::Write, ""),
        ("EVAL script 9 a", "eval", Class::Write, ""),
        ("EVAL script x a", "eval", Class::Write, ""),
        ("EVAL script 4294967295 a", "eval", Class::Write, ""),
        ("EVAL script -1 a", "eval", Class::Write, ""),
        (
            "ZUNIONSTORE d 2 a b WEIGHTS 1 2",
            "zunionstore",
            Class::Write,
            "d a b",
        ),
        ("BLMPOP 0 2 a b LEFT", "blmpop", Class::Session, "a b"),
        ("BLPOP a b 0", "blpop", Class::Session, "a b"),
        ("SORT a BY w STORE d", "sort", Class::Write, "a d"),
        ("GEORADIUS g 1 2 3 m STORE d", "georadius", Class::Write, "g d"),
        ("BITOP AND d a b", "bitop", Class::Write, "d a b"),
        ("LMOVE a b LEFT LEFT", "lmove", Class::Write, "a b"),
        ("COPY a b", "copy", Class::Write, "a b"),
        ("MSETEX 2 a 1 b 2 EX 5", "msetex", Class::Write, "a b"),
        ("PUBLISH c m", "publish", Class::Session, "c"),
        ("SPUBLISH c m", "spublish", Class::Session, "c"),
        ("PUBSUB NUMSUB c d", "pubsub|numsub", Class::Session, "c d"),
        ("PUBSUB NUMSUB", "pubsub|numsub", Class::Session, ""),
        ("SSUBSCRIBE c d", "ssubscribe", Class::Session, ""),
        ("VADD k VALUES 1 1 e", "vadd", Class::Write, "k"),
        ("PING", "ping", Class::Session, ""),
        ("GET", "get", Class::Session, ""),
        ("GET a b", "get", Class::Session, ""),
        ("CLIENT SETNAME x", "client|setname", Class::Session, ""),
        ("CLIENT NOPE x", "client", Class::Session, ""),
        ("NOPE a", "", Class::Session, ""),
        ("client|setname a", "", Class::Session, ""),
        ("GET __", "get", Class::Read, ""),
    ];
    each_row(rows, |&(words, command, class, keys)| {
        let message = array(words);
        let request = parsed(&[&message[..], b"*1\r\n"].concat());
        assert_eq!(
            (name(request.command), request.class),
            (command, class),
            "{words}"
        );
        assert_eq!(request.len(), message.len() as u64, "{words}");
        let mut found = Vec::new();
        if class != Class::Session || !keys.is_empty() {
            let command = Command::of(request.command).unwrap();
            each_key(command, &message, command.is_by_channel(), &mut |key| {
                found.push(String::from_utf8_lossy(key.of(&message)).into_owned());
            });
        }
        assert_eq!(found.join(" "), keys, "{words}");
        let first = keys.split(' ').next().unwrap_or_default();
        assert_eq!(request.key.of(&message), first.as_bytes(), "{words}");
        assert_eq!(!request.more_keys.is_empty(), keys.contains(' '), "{words}");
    });
}

#[test]
fn channels_are_told_apart_from_keys() {
    for (words, channels) in [
        ("PUBLISH c m", "c"),
        ("SPUBLISH c m", "c"),
        ("SSUBSCRIBE c d", "c d"),
        ("GET k", ""),
    ] {
        let message = array(words);
        let mut found = Vec::new();
        let command = Command::of(find(&message).0).unwrap();
        each_key(command, &message, true, &mut |key| {
            found.push(String::from_utf8_lossy(key.of(&message)).into_owned());
        });
        assert_eq!(found.join(" "), channels, "{words}");
    }
}

#[test]
fn a_command_that_waits_says_how_long() {
    for (words, millis) in [
        ("BLPOP a 0", u32::MAX),
        ("BLPOP a b 1.5", 1500),
        ("BLPOP a x", 1),
        ("BLPOP a -1", 1),
        ("BLPOP a inf", u32::MAX - 1),
        ("BLMOVE a b LEFT LEFT 2", 2000),
        ("BLMPOP 3 1 a LEFT", 3000),
        ("BZMPOP 0 1 a MIN", u32::MAX),
        ("XREAD BLOCK 200 STREAMS a 0", 200),
        ("XREAD COUNT 1 BLOCK 0 STREAMS a 0", u32::MAX),
        ("XREAD STREAMS block 0", 0),
        ("XREADGROUP GROUP streams c BLOCK 200 STREAMS a >", 200),
        ("XREADGROUP COUNT 1 GROUP g streams BLOCK 0 STREAMS a >", u32::MAX),
        ("XREADGROUP GROUP block block STREAMS block >", 0),
        ("GET a", 0),
    ] {
        assert_eq!(parsed(&array(words)).extra_timeout, millis, "{words}");
    }
}

#[test]
fn inline_commands_and_strangers_are_recognized() {
    let inline = parsed(b"get k\r\n");
    assert_eq!(
        (inline.command, inline.class, inline.len()),
        (INLINE, Class::Session, 7)
    );
    for text in [
        &b"POST / HTTP/1.1\r\n"[..],
        b"host: x\r\n",
        b"*1\r\n$4\r\npost\r\n",
    ] {
        let parsed = request(&mut Parse::default(), text, &LIMITS);
        let Parsed::Bad(bad) = parsed else {
            panic!("{parsed:?}")
        };
        assert!(bad.close && bad.reply.is_empty() && bad.why.contains("HTTP"));
    }
    assert_eq!(parsed(&array("NOPE")).command, UNKNOWN);
}

#[test]
fn a_large_value_is_passed_on_before_it_has_come() {
    let begun = b"*5\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\nvvv";
    let request_ = parsed(begun);
    assert_eq!(
        (name(request_.command), request_.key.of(begun)),
        ("set", &b"k"[..])
    );
    assert_eq!(
        (request_.head as usize, request_.body, request_.is_open),
        (29, 100_000, true)
    );
    // Where keys may follow, or the request may not be valid, all of it has to come.
    for begun in [
        &b"*5\r\n$4\r\nMSET\r\n$1\r\nk\r\n$100000\r\nvvv"[..],
        b"*3\r\n$4\r\nEVAL\r\n$100000\r\nvvv",
        b"*9\r\n$3\r\nGET\r\n$1\r\nk\r\n$100000\r\nvvv",
        b"*2\r\n$3\r\nGET\r\n$100000\r\nkkk",
    ] {
        assert_eq!(request(&mut Parse::default(), begun, &LIMITS), Parsed::More);
    }
    let long = array(&format!("MSET a {} b {}", "v".repeat(50_000), "w".repeat(50_000)));
    let whole = parsed(&long);
    assert_eq!((whole.len(), whole.body), (long.len() as u64, 50_002));
}

#[test]
fn a_transaction_that_has_come_whole_is_one_request() {
    let all = |commands: &[&str]| -> Vec<u8> { commands.iter().flat_map(|words| array(words)).collect() };
    let message = all(&["MULTI", "SET k v", "PUBLISH c m", "ZADD l 1 a", "EXEC"]);
    let request = parsed(&[&message[..], b"*1"].concat());
    assert_eq!(
        (request.command, request.class),
        (TRANSACTION + 3, Class::Session)
    );
    assert_eq!(replies(request.command), 5);
    assert_eq!(request.len(), message.len() as u64);
    assert_eq!(
        (request.key.of(&message), request.more_keys.is_empty()),
        (&b"k"[..], false)
    );
    let inner: Vec<_> = commands(&message)
        .map(|(at, bytes)| (&message[at..at + bytes.len()], bytes))
        .collect();
    assert_eq!(inner.len(), 3);
    assert!(inner.iter().all(|(there, bytes)| there == bytes));
    for others in [
        &["MULTI", "SET k v"][..],
        &["MULTI", "EXEC"],
        &["MULTI", "PING", "EXEC"],
        &["MULTI", "SET k v", "SUBSCRIBE c", "EXEC"],
        &["MULTI", "SET k v", "SELECT 1", "EXEC"],
        &["MULTI", "SET k v", "MULTI", "EXEC"],
        &["MULTI", "SET k v", "DISCARD"],
        &["MULTI", "SET k", "EXEC"],
        &["MULTI", "NOPE k", "EXEC"],
        &["MULTI", "SET k v", "DEBUG SLEEP", "EXEC"],
    ] {
        let request = parsed(&all(others));
        assert_eq!(name(request.command), "multi", "{others:?}");
    }
}
