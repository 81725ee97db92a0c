//! The codec's hot path does not allocate.

use proxima_wire::memcache::{
    Command, Limits, Rewrite, default_reply, key, keys, reply, request, rewrite, rewrite_reply_key, silenced,
    single,
};
use proxima_wire::message::Parsed;
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
            black_box(Command::from_number(request.command).map(|command| silenced(command, outcome)));
        }
    }
    for (command, bytes) in replies {
        black_box(reply(command, bytes));
        rewrite_reply_key(command, b"own", bytes, &mut out);
    }
    let change = region.change();
    assert!(out.len() > 100);
    assert_eq!((change.allocations, change.reallocations), (0, 0));
}
