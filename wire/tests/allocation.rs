//! The codecs' hot paths do not allocate.

use proxima_wire::memcache::{
    Command, Limits, Rewrite, default_reply, key, keys, reply, request, rewrite, rewrite_reply_key, silenced,
    single,
};
use proxima_wire::message::{Parse, Parsed};
use proxima_wire::mysql::{
    Capabilities, Packets, ReplyReader, Shape,
    sql::{Mode, statement},
};
use proxima_wire::resp;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// This is the only test of this file, because another thread's allocations would count here.
#[test]
fn reading_and_rewriting_messages_allocates_nothing() {
    let limits = Limits::default();
    let requests: [&[u8]; 10] = [
        b"get 0123456789\r\n",
        b"gets a b c d e f\r\n",
        b"set a 0 0 400 noreply\r\n",
        b"gat 10 a b\r\n",
        b"mg Zm9v b v k q O1\r\n",
        b"ms a 400 T60 q\r\n",
        b"delete a b c d\r\n",
        b"nonsense\r\n",
        b"set a 0 0 999999999\r\n",
        b"get half",
    ];
    let replies: [(Command, &[u8]); 5] = [
        (Command::Get, b"VALUE a 0 400\r\n"),
        (Command::Get, b"END\r\n"),
        (Command::MetaGet, b"VA 400 ka O1\r\n"),
        (Command::Set, b"SERVER_ERROR 307 busy\r\n"),
        (Command::Set, b"nonsense\r\n"),
    ];
    // The buffer has room for everything: its growth is the caller's concern.
    let mut out = Vec::with_capacity(1 << 20);
    // The thread that has started this one may still allocate at first: what the codecs do, they do each time.
    let counted: Vec<_> = (0..5)
        .map(|_| {
            out.clear();
            let region = Region::new(ALLOCATOR);
            for bytes in requests {
                if let Parsed::Head(request) = black_box(request(bytes, &limits)) {
                    black_box(key(&request, bytes, &mut [0; 250]));
                    for key in keys(&request, bytes) {
                        single(&request, bytes, key.of(bytes), &mut out);
                    }
                    let change = Rewrite {
                        key: Some(b"other"),
                        ttl: Some(60),
                    };
                    black_box(rewrite(&request, bytes, &change, &mut out));
                    let outcome = default_reply(&request, bytes, &mut out);
                    black_box(
                        Command::from_number(request.command).map(|command| silenced(command, outcome)),
                    );
                }
            }
            for (command, bytes) in replies {
                black_box(reply(command, bytes));
                rewrite_reply_key(command, b"own", bytes, &mut out);
            }
            let resp: [&[u8]; 4] = [
                b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5\r\nvalue\r\n",
                b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$99999\r\nval",
                b"*2\r\n$3\r\nGET\r\n$1",
                b"set k \"v v\"\r\n",
            ];
            for bytes in resp {
                black_box(resp::frame(
                    &mut Parse::default(),
                    bytes,
                    &resp::Limits { value: 1 << 20 },
                ));
                black_box(resp::Args::of(bytes).count());
                black_box(resp::inline::append_array(bytes, &mut out));
            }
            for bytes in [
                &b"$5\r\nvalue\r\n"[..],
                b"*2\r\n%1\r\n+a\r\n:1\r\n_\r\n",
                b">1\r\n+a\r\n",
                b"nonsense",
            ] {
                black_box(resp::whole(bytes));
                let _ = black_box(resp::reply(&mut Parse::default(), resp::Expect::Reply, bytes));
            }
            for text in [
                "SELECT id FROM t WHERE name = 'x' /*!50000 FOR UPDATE */",
                "INSERT INTO t (a) VALUES (1); SELECT LAST_INSERT_ID()",
                "SELECT 'nonsense",
            ] {
                black_box(statement(text.as_bytes(), Mode::default()));
            }
            // The reader keeps memory for messages in parts, which these are not.
            let mut reader = ReplyReader::new(Shape::Results, Capabilities::PROTOCOL_41, 1);
            for bytes in [
                &b"\x07\0\0\x01\0\0\0\x02\0\0\0"[..],
                b"\x01\0\0\x01\x01\x04\0\0\x02\x03def\x05\0\0\x03\xfe\0\0\x02\0",
                b"\x01\0\0\x01\xfb",
            ] {
                reader.begin(Shape::Results, 1);
                black_box(Packets::from(1).next(bytes).is_ok());
                let mut rest = bytes;
                while let Ok(step) = reader.read(rest) {
                    rest = &rest[step.taken..];
                    if rest.is_empty() {
                        break;
                    }
                }
            }
            let change = region.change();
            assert!(out.len() > 100);
            (change.allocations, change.reallocations)
        })
        .collect();
    assert_eq!(counted.iter().min(), Some(&(0, 0)), "{counted:?}");
}
