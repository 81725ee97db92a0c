//! Sequences of commands, each for something that can go wrong.

use crate::{both::Both, rows::each_row};

/// Each sequence is a case of its own, and everything is deleted in between. `|` stands for a line end.
#[rustfmt::skip]
const SEQUENCES: &[&[&str]] = &[
    // get, gets, gat and gats
    &["get a", "get a b c", "set a 0 0 1|1", "get a", "get a b", "get b a", "get a a a", "gets a",
      "gets a b"],
    &["set a 4294967295 0 3|xyz", "get a", "gets a", "get  a ", "get"],
    &["set a 0 0 0|", "get a", "gets a", "mg a v s", "append a 0 0 0|", "get a"],
    &["gat 100 a", "set a 5 0 1|1", "gat 100 a", "mg a t", "gats 0 a b", "mg a t", "gat x a", "gat 10",
      "gat -1 a", "get a"],
    &["touch a 10", "set a 0 0 1|1", "touch a 100", "mg a t", "touch a 0", "mg a t", "touch a x",
      "touch a -1", "get a"],
    &["touch a", "touch", "touch a 1 2 3", "gat", "gats"],
    // set and the other storing commands
    &["add a 1 0 1|1", "add a 2 0 1|2", "get a", "replace b 0 0 1|1", "get b", "replace a 3 0 2|33",
      "get a"],
    &["append a 0 0 1|1", "prepend a 0 0 1|1", "set a 7 0 1|m", "append a 9 0 3|zzz",
      "prepend a 9 0 3|aaa", "get a"],
    &["set a 0 100 1|m", "append a 0 5 1|z", "mg a t v", "prepend a 0 0 1|y", "mg a t v h"],
    &["set a 0 0 1|12345|6789", "get a", "set a 0 0 2|12", "get a"],
    &["set a 0 0 3|12\r", "get a"],
    &["set a 0 0 -1|", "set a x 0 1|1", "set a 0 x 1|1"],
    &["set a 0 0", "set a", "set", "add a 0 0 1 2 3", "replace", "append a", "prepend a 1"],
    &["set a 0 -1 1|1", "get a", "set a 0 2592000 1|1", "mg a t", "set a 0 2592001 1|1", "get a"],
    &["set a 0 {unix 100} 1|1", "mg a t", "set a 0 {unix -100} 1|1", "get a", "set a 0 2147483647 1|1",
      "get a"],
    &["set a 0 0 1|1", "set a 0 {unix -1} 1|2", "get a", "add a 0 0 1|3", "get a"],
    // Numbers with a plus, and times of more than 32 bits
    &["set a +7 +30 1|5", "get a", "mg a t", "incr a +1", "decr a +2", "touch a +100", "mg a t", "gat +50 a",
      "mg a t", "set a 4294967303 0 1|5", "get a", "cas a +7 +0 1 +18446744073709551615|6"],
    &["set a 0 99999999999 1|1", "get a", "set a 0 4294967295 1|1", "get a", "set a 0 4294967296 1|1", "mg a t",
      "set a 0 4294967396 1|1", "mg a t", "set a 0 -4294967297 1|1", "get a", "set a 0 9223372036854775808 1|1"],
    &["set a 0 0 1|1", "touch a 4294967396", "mg a t", "touch a 4294967295", "get a", "flush_all 4294967396",
      "flush_all -1"],
    &["set a 0 0 1|1", "flush_all +100", "get a", "flush_all -1", "get a"],
    &["ms a 1 T+30 F+7|5", "mg a t f v", "ma a D+1 v", "ma a T4294967396 t", "mg a T+40 t", "mg a R+50",
      "ma b N+30 J+5 t v", "mg c N4294967396 t", "ms a 1 T4294967295|5", "mg a", "ms a 1 C+5|1",
      "ms a 1 F4294967303|1", "mg a f", "ms a 1 F18446744073709551616|1", "ms a 1 F-1|1", "ma a D++1", "ma a D-1"],
    // cas
    &["cas a 0 0 1 1|1", "set a 0 0 1|1", "gets a", "cas a 1 0 1 {cas a}|2", "gets a",
      "cas a 0 0 1 {old a}|3", "get a"],
    &["set a 0 0 1|1", "cas a 0 0 1 {new a}|3", "get a", "cas a 0 0 1 0|3", "get a", "cas a 0 0 1 x|1"],
    &["set a 0 0 1|1", "gets a", "set a 0 0 1|2", "gets a", "incr a 1", "gets a", "touch a 100", "gets a",
      "append a 0 0 1|1", "gets a"],
    &["set a 0 0 1|1", "gets a", "get a", "gets a", "mg a T100 c", "gets a", "set b 0 0 1|1", "gets a b",
      "delete a", "set a 0 0 1|1", "gets a"],
    &["cas a 0 0 1", "cas a 0 0 1 1 2 3", "cas a 0 100 1 {cas a}|1"],
    // delete
    &["delete a", "set a 0 0 1|1", "delete a", "get a", "delete a 0", "delete a 1", "delete a 0 noreply",
      "delete a 5 noreply", "delete"],
    &["set a 0 0 1|1", "delete a noreply", "get a", "delete a x y", "delete a b c d"],
    // incr and decr
    &["incr a 1", "decr a 1", "set a 3 0 2|10", "incr a 5", "get a", "decr a 6", "get a", "decr a 100",
      "get a", "incr a 1", "get a"],
    &["set a 0 0 20|18446744073709551615", "incr a 1", "get a", "incr a 18446744073709551615", "get a",
      "incr a 1", "get a"],
    &["set a 0 0 1|9", "incr a 1", "get a", "decr a 1", "get a", "append a 0 0 1|5", "get a", "incr a 1"],
    &["set a 0 0 3|abc", "incr a 1", "set a 0 0 0|", "incr a 1", "set a 0 0 2|1a", "incr a 1",
      "set a 0 0 2|a1", "incr a 1"],
    &["set a 0 0 2| 5", "incr a 1", "get a", "set a 0 0 2|5 ", "incr a 1", "get a", "set a 0 0 3|5 x",
      "incr a 1", "get a"],
    &["set a 0 0 2|-5", "incr a 1", "set a 0 0 2|+5", "incr a 1", "get a", "set a 0 0 2|05", "incr a 1",
      "get a"],
    &["set a 0 0 21|184467440737095516150", "incr a 1", "set a 0 0 20|18446744073709551616", "incr a 1"],
    &["set a 0 0 50|5                                                 ", "incr a 1", "get a", "decr a 6",
      "get a"],
    &["set a 0 0 25|0000000000000000000000007", "incr a 1", "get a"],
    &["set a 0 0 1|1", "incr a x", "incr a -1", "incr a 18446744073709551616", "incr a", "incr",
      "incr a 1 2 3", "decr a 1 x"],
    &["set a 5 100 1|9", "incr a 1", "mg a t f v", "decr a 9", "mg a t f v s"],
    // quiet
    &["set a 0 0 1 noreply|1", "get a", "add a 0 0 1 noreply|2", "get a", "replace a 0 0 1 noreply|3",
      "get a"],
    &["append a 0 0 1 noreply|2", "set a 0 0 1|1", "prepend a 0 0 1 noreply|2", "get a",
      "incr a 1 noreply", "get a", "decr a 2 noreply", "get a"],
    &["touch a 10 noreply", "set a 0 0 1|1", "touch a 10 noreply", "mg a t", "delete b noreply",
      "verbosity 0 noreply", "flush_all noreply", "get a"],
    &["set a 0 0 1|1", "cas a 0 0 1 {cas a} noreply|2", "get a", "cas a 0 0 1 {old a} noreply|3", "get a"],
    // admin
    &["set a 0 0 1|1", "flush_all", "get a", "add a 0 0 1|2", "get a", "set b 0 0 1|1", "get a b",
      "flush_all 0", "get a b"],
    &["set a 0 0 1|1", "flush_all 100", "get a", "flush_all x", "flush_all -1", "get a", "flush_all 1 2 3"],
    &["set a 0 0 1|1", "flush_all 0 noreply", "get a", "incr a 1", "append a 0 0 1|1", "touch a 1",
      "delete a", "mg a"],
    &["verbosity 0", "verbosity", "verbosity x", "verbosity 1 2", "mn", "mn x", "config get cluster"],
    &["lru_crawler", "lru_crawler foo", "lru_crawler metadump", "lru_crawler metadump all x"],
    &["stats reset", "stats foo", "stats sizes", "nonsense", "GET a", "getx a", "s", "bogus a b c"],
    // mg
    &["mg a", "mg a v", "mg a k O1", "mg a k q", "mg a q", "mg a s v t c f l h k Oabc"],
    &["set a 7 0 3|abc", "mg a", "mg a v", "mg a s v", "mg a t", "mg a c", "mg a f", "mg a h", "mg a l",
      "mg a k", "mg a Oopaque k q v"],
    &["set a 7 100 3|abc", "mg a k v f s t O1", "mg a O1 t s f v k", "mg a h", "mg a h", "set a 0 0 1|1",
      "mg a h", "mg a h"],
    &["set a 0 0 1|1", "mg a u", "mg a h u", "mg a h u", "mg a h", "mg a h", "get a", "mg a h"],
    &["set a 0 0 1|1", "gat 0 a", "mg a h", "set a 0 0 1|1", "touch a 0", "mg a h", "set a 0 0 1|1",
      "add a 0 0 1|2", "mg a h"],
    &["set a 0 0 1|1", "incr a 1", "mg a h", "mg a h", "incr a 1", "mg a h", "append a 0 0 1|1", "mg a h",
      "decr a 1", "mg a h"],
    &["set a 0 100 1|1", "mg a T200 t", "mg a t", "mg a t T300 t", "mg a t T300", "mg a t", "mg a T0 t",
      "mg a t", "mg a T-1", "mg a"],
    &["mg a N30", "mg a", "mg a v", "mg a t", "set a 0 0 1|1", "mg a", "mg a N30"],
    &["mg a N30 t c v k O1 s f h l", "mg a t N30", "mg b t N30", "mg b t", "mg c N0 t", "mg c t",
      "mg d N-1 v", "mg d"],
    &["mg a N30 R20", "mg a R40", "mg a R40", "ms a 1 T30|1", "mg a R20", "mg a R40", "mg a R40",
      "ms a 1 T30|1", "mg a R40 k"],
    &["ms a 1|1", "mg a R30", "ms a 1 T100|1", "mg a R-1", "mg a R0", "mg a R2592001", "mg a T10 R30",
      "mg a R30 T10", "ms a 1 T100|1", "mg a R30 T10", "mg a R30"],
    &["ms a 1|1", "md a I", "mg a", "mg a", "mg a v k", "ms a 1|2", "mg a"],
    &["ms a 1|1", "md a I T30", "mg a t c", "mg a t", "md a I", "mg a t", "md a q I", "mg a", "md a I T-1",
      "mg a"],
    &["ms a 2|ab", "md a I", "append a 0 0 1|c", "mg a v", "md a I", "touch a 100", "mg a t", "md a I",
      "add a 0 0 1|1", "mg a"],
    &["ms a 1|1", "md a I", "incr a 1", "mg a v", "md a I", "mg a", "incr a 1", "mg a v", "incr a 1000",
      "mg a v"],
    &["set a 0 0 1|1", "mg a z", "mg a k k", "mg a Tx", "mg a Nx", "mg a Rx", "mg a N", "mg a T", "mg a M",
      "mg a MS v"],
    &["mg", "mg a O12345678901234567890123456789012", "mg a O1234567890123456789012345678901", "mg a b",
      "mg a k v z"],
    &["set a 0 0 1|1", "mg a P1 Lx v", "mg a C1 v", "mg a F1 I D1 J1 v", "mg a Cx", "mg a Jx", "mg a Dx",
      "mg a Fx"],
    // base64
    &["ms Zm9v 3 b|bar", "mg Zm9v b k v", "mg foo k v", "get foo", "mg Zm9v k", "me foo", "me Zm9v b",
      "md Zm9v b k", "mg foo"],
    &["set foo 0 0 1|1", "mg Zm9v b k v", "ma Zm9v b k v", "ms Zm9v 1 b k c|5", "mg foo k",
      "ma Zm9v b k N0 O1 q", "mg Zm9v b k O5 s"],
    &["mg Zm9v b k O1", "md Zm9v b k O1", "ma Zm9v b k O1", "ms Zm9v 1 b k O1 MR|1", "ms AGEK 1 b k|1",
      "mg AGEK b k v", "ms Zm9= 1 b k|1", "mg Zm9= b k"],
    &["mg Zm9 b", "mg !!!! b", "ms !!!! 1 b|1", "md !!!! b", "ma !!!! b", "me !!!! b"],
    // ms
    &["ms a 1|1", "mg a v f t", "ms a 2 F5 T100|22", "mg a v f t", "ms a 1 k Oxyz c|1", "mg a c",
      "ms a 1 q|1", "ms a 1 q k O1|1", "mg a v"],
    &["ms a 1 ME|1", "ms a 1 ME|2", "mg a v", "ms b 1 MR|1", "ms a 1 MR|3", "mg a v", "ms b 1 MA|1",
      "ms b 1 MP|1", "ms a 1 MA|4", "ms a 1 MP|2", "mg a v", "ms a 1 MS|9", "mg a v"],
    &["ms a 1 MX|1", "ms a 1 M|1", "ms a 1 MSS|1", "ms a 1 Me|1", "mg a"],
    &["ms a 1 C5|1", "ms a 1|1", "ms a 1 C{cas a}|2", "mg a v", "ms a 1 C{old a} c|3",
      "ms a 1 C{new a} k|3", "ms a 1 C0|3", "mg a v"],
    &["ms a 1|1", "ms a 1 MR C{cas a}|2", "ms a 1 MR C{old a}|3", "ms a 1 ME C{cas a}|4",
      "ms a 1 MA C{cas a}|5", "ms a 1 MA C{old a}|6", "ms a 1 MP C{new a}|6", "mg a v"],
    &["ms b 1 MA C1|1", "ms b 1 MR C1|1", "ms b 1 ME C1|1", "mg b v"],
    &["ms a 1 T100|1", "ms a 1 I C{old a} T50|2", "mg a v t c", "mg a v", "ms a 1 I C{new a}|3", "mg a v",
      "ms a 1 C{cas a}|4", "mg a v"],
    &["ms a 1|1", "md a I", "mg a", "ms a 1 I C{old a}|2", "mg a v", "mg a v", "ms a 1 I C{cas a}|3",
      "mg a v"],
    &["ms a 1 I|1", "mg a v", "ms a 1 I MA C{old a}|2", "mg a v", "ms b 1 I C1|1"],
    &["ms a 1 Fx|1", "ms a 1 Cx|1", "ms a 1 Tx|1", "ms a 1 z|1", "ms a 1 k k|1", "ms a 1 Jx|1",
      "ms a 1 Dx|1", "ms a 1 Fx Cx|1", "ms a 1 Cx Fx|1", "mg a"],
    &["ms a 1 O12345678901234567890123456789012|1", "ms a 1 O1234567890123456789012345678901|1", "ms a",
      "ms", "ms a x", "ms a -1"],
    &["ms a 1|12345|6789", "mg a v", "ms a 1 q|12345|6789", "ms a 3 k|12\r", "ms a 0|", "mg a v s", "ms a 1 S|1",
      "ms a 1 P1 Lx|1", "ms a 1 v t|1"],
    // md
    &["md a", "md a q", "ms a 1|1", "md a k O1", "mg a", "ms a 1|1", "md a q", "mg a", "md a q k O1"],
    &["ms a 1|1", "md a C{old a}", "md a C{new a} k O1", "md a q C{old a}", "md a C{cas a}", "mg a",
      "md a C5", "md a C0"],
    &["ms a 1|1", "md a k", "md a k k", "md a Cx", "md a Tx", "md a O12345678901234567890123456789012",
      "md a T100", "mg a", "md"],
    &["ms a 1|1", "md a C0", "mg a", "ms a 1 T100|1", "md a I C{cas a} T50 k", "mg a t v",
      "md a I C{old a}", "mg a"],
    // ma
    &["ma a", "ma a q", "ma a k O1", "ms a 1|1", "ma a", "ma a v", "ma a v k O1 t c", "ma a q", "ma a q v",
      "mg a v", "ma"],
    &["ms a 2|10", "ma a MD v", "ma a M- v", "ma a MI v", "ma a M+ v", "ma a Mx", "ma a M", "ma a D5 v",
      "ma a D100 MD v", "mg a v", "ma a D18446744073709551615 v"],
    &["ma a N0 v", "ma a N0 v", "ma b N100 J50 v t", "ma b v t", "ma c t N100", "ma c t",
      "ma d N0 J5 D3 MD v k O1 c", "ma d v", "ma e N0", "mg e v"],
    &["ms a 3|abc", "ma a", "ma a q", "ma a v N0", "ms a 0|", "ma a", "ma a C5", "ms a 1|1", "ma a C5",
      "ma a C{cas a} v c", "ma a C{old a} k O1", "ma a C0 v", "ma b C5"],
    &["ms a 2 T100 F7|10", "ma a T200 t v", "mg a t f v", "ma a t T300", "mg a t", "ma a T0 t", "mg a t"],
    &["ms a 1|1", "ma a z", "ma a Dx", "ma a Jx", "ma a Nx", "ma a Tx", "ma a Cx", "ma a k k", "ma a Fx",
      "mg a v"],
    // me
    &["me a", "set a 0 0 1|1", "me a", "get a", "me a", "set a 5 100 3|abc", "me a", "touch a 50", "me a",
      "me", "me a x"],
    // Keys.
    &["set aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 0 0 1|1",
      "get aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"],
    &["set \u{e9} 0 0 1|1", "get \u{e9}", "set a\tb 0 0 1|1", "get a\tb", "mg a\tb k v"],
];

#[test]
fn sequences_of_commands_are_answered_as_by_memcached() {
    let mut both = Both::start();
    each_row(SEQUENCES, |sequence| {
        for command in **sequence {
            both.same(&(command.replace('|', "\r\n") + "\r\n"));
        }
        for key in ["a", "b", "c", "d", "e", "foo"] {
            both.same(&format!("delete {key}\r\n"));
        }
    });
}

#[test]
fn values_at_the_limit_are_stored_or_refused_as_memcached_does() {
    let mut both = Both::start();
    // The limit is 1 MiB less the item's head, its cas id, the key and a NUL, and the line end.
    let largest = (1 << 20) - 48 - 8 - 2 - 2;
    let rows = [
        (largest, 0),
        (largest + 1, 0),
        (largest - 4, 1),
        (largest - 3, 1),
        (600_000, 0),
    ];
    each_row(rows, |&(length, flags)| {
        let value = "x".repeat(length);
        for command in [
            "set a 0 0 3\r\nold\r\n".to_owned(),
            format!("add a {flags} 0 {length}\r\n{value}\r\n"),
            format!("replace b {flags} 0 {length}\r\n{value}\r\n"),
            "get a\r\n".to_owned(),
            format!("cas a {flags} 0 {length} {{new a}}\r\n{value}\r\n"),
            "get a\r\n".to_owned(),
            format!("append a {flags} 0 {length}\r\n{value}\r\n"),
            "get a\r\n".to_owned(),
            format!("append a {flags} 0 {length}\r\n{value}\r\n"),
            format!("set a {flags} 0 {length}\r\n{value}\r\n"),
            "get a\r\n".to_owned(),
            "set a 0 0 3\r\nold\r\n".to_owned(),
            format!("ms a {length} F{flags} ME\r\n{value}\r\n"),
            "get a\r\n".to_owned(),
            format!("set a {flags} 0 {length} noreply\r\n{value}\r\n"),
            "get a\r\n".to_owned(),
            "delete a\r\n".to_owned(),
        ] {
            both.same(&command);
        }
    });
}
