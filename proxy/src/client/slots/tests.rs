use std::sync::Arc;

use proxima_wire::message::Outcome;

use super::*;
use crate::{
    client::HIGH_WATER,
    protocol::{Assembly, Parts},
};

fn reply(outcome: Outcome, trailer: u32) -> Reply {
    Reply {
        trailer,
        ..Reply::new(outcome, 0)
    }
}

#[test]
fn replies_leave_in_the_order_of_the_requests() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b, c] = [0; 3].map(|_| slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO));
    let stored = reply(Outcome::Stored, 0);
    slots.answer(c, &stored, b"C", false, &mut out);
    slots.answer(a, &stored, b"A", false, &mut out);
    assert_eq!(out, b"A");
    slots.push_answer(b"D", &mut out);
    slots.answer(b, &stored, b"B", false, &mut out);
    assert_eq!(out, b"ABCD");
    assert!(slots.is_empty() && slots.buffered() == 0);
}

#[test]
fn parts_are_joined_and_closed_once() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b] = [0; 2].map(|_| slots.push(1, false, ReplyRole::Body, 0, Micros::ZERO));
    slots.close(&Join::Concat { end: b"END\r\n" }, &mut out);
    let hit = reply(Outcome::Found, 5);
    slots.answer(b, &reply(Outcome::NotFound, 5), b"END\r\n", false, &mut out);
    slots.answer(a, &hit, b"VALUE a 0 1\r\nx\r\nEND\r\n", false, &mut out);
    assert_eq!(out, b"VALUE a 0 1\r\nx\r\nEND\r\n");
}

#[test]
fn after_a_failed_part_its_error_stands_for_the_rest() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b, c] = [0; 3].map(|_| slots.push(1, false, ReplyRole::Body, 0, Micros::ZERO));
    slots.close(&Join::Concat { end: b"END\r\n" }, &mut out);
    let hit = reply(Outcome::Found, 5);
    slots.answer(c, &hit, b"VALUE c 0 1\r\nx\r\nEND\r\n", false, &mut out);
    slots.answer(
        b,
        &reply(Outcome::Timeout, 0),
        b"SERVER_ERROR timeout\r\n",
        false,
        &mut out,
    );
    slots.answer(a, &hit, b"VALUE a 0 1\r\nx\r\nEND\r\n", false, &mut out);
    assert_eq!(out, b"VALUE a 0 1\r\nx\r\nSERVER_ERROR timeout\r\n");
}

#[test]
fn a_large_reply_that_came_early_goes_on_leaving_when_its_turn_comes() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b] = [0; 2].map(|_| slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO));
    slots.begin(b);
    slots.more(b, b"head ", &mut out);
    slots.more(b, b"one ", &mut out);
    assert_eq!((out.len(), slots.buffered()), (0, 9));
    slots.answer(a, &reply(Outcome::Stored, 0), b"A ", false, &mut out);
    slots.more(b, b"two", &mut out);
    assert_eq!(slots.buffered(), 0);
    slots.finish(b, &mut out);
    assert_eq!(out, b"A head one two");
    assert!(slots.is_empty());
}

#[test]
fn a_large_reply_that_came_whole_before_its_turn_leaves_in_its_turn() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b, c] = [0; 3].map(|_| slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO));
    slots.begin(b);
    slots.more(b, b"large ", &mut out);
    assert!(!slots.passes(b, true));
    slots.finish(b, &mut out);
    assert_eq!(slots.buffered(), 6);
    slots.answer(a, &reply(Outcome::Stored, 0), b"A ", false, &mut out);
    assert_eq!((out.as_slice(), slots.buffered()), (&b"A large "[..], 0));
    slots.begin(c);
    assert!(slots.passes(c, true));
    let d = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
    assert!(slots.passes(c, false) && !slots.passes(c, true) && !slots.passes(d, false));
}

#[test]
fn a_reply_that_breaks_off_can_be_replaced_until_it_leaves() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b] = [0; 2].map(|_| slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO));
    slots.begin(b);
    slots.more(b, b"half", &mut out);
    assert!(slots.forget(b));
    slots.answer(b, &reply(Outcome::Timeout, 0), b"late", false, &mut out);
    slots.begin(a);
    slots.more(a, b"half", &mut out);
    assert!(!slots.forget(a));
    assert_eq!(out, b"half");
}

#[test]
fn what_waits_is_packed_when_most_of_it_has_left() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let stored = reply(Outcome::Stored, 0);
    let first = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
    let big = vec![b'x'; 40 * 1024];
    // Answers keep coming early while one request always waits: the buffer must not grow with time.
    let mut last = first;
    for _ in 0..100 {
        let next = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
        slots.answer(next, &stored, &big, false, &mut out);
        let new = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
        slots.answer(last, &stored, b"", false, &mut out);
        last = new;
    }
    assert!(slots.buffered() < 4 * big.len(), "{}", slots.buffered());
    assert_eq!(out.len(), 100 * big.len());
}

#[test]
fn a_large_part_behind_one_that_failed_holds_up_nobody() {
    for role in [ReplyRole::Body, ReplyRole::Number] {
        let (mut slots, mut out) = (Slots::default(), Vec::new());
        let [a, b, c] = [0; 3].map(|_| slots.push(1, false, role, 0, Micros::ZERO));
        slots.close(&Join::Concat { end: b"END\r\n" }, &mut out);
        let behind = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
        // One part has begun before the failure is known, the other after.
        slots.begin(c);
        slots.more(c, b"large", &mut out);
        slots.answer(a, &Reply::new(Outcome::Timeout, 5), b"late!", false, &mut out);
        slots.begin(b);
        slots.more(b, b"large", &mut out);
        slots.finish(b, &mut out);
        slots.more(c, b"larger", &mut out);
        assert_eq!((out.as_slice(), slots.buffered()), (&b""[..], 0));
        slots.finish(c, &mut out);
        assert_eq!(out, b"late!", "{role:?}");
        slots.answer(behind, &Reply::new(Outcome::Found, 1), b"v", false, &mut out);
        assert_eq!(
            (out.as_slice(), slots.len(), slots.buffered()),
            (&b"late!v"[..], 0, 0)
        );
    }
}

#[test]
fn request_of_several_parts_fails_once_whichever_part_fails_first() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let end = &Join::Concat { end: b"END\r\n" };
    let failed = reply(Outcome::Timeout, 0);
    let [a, b, c] = [0; 3].map(|_| slots.push(1, false, ReplyRole::Body, 0, Micros::ZERO));
    slots.close(end, &mut out);
    let other = slots.push(1, false, ReplyRole::Body, 0, Micros::ZERO);
    slots.close(end, &mut out);
    let quiet = slots.push(1, true, ReplyRole::Whole, 0, Micros::ZERO);
    assert!(slots.fails_first(b) && slots.fails_first(other) && !slots.fails_first(quiet));
    slots.answer(b, &failed, b"E\r\n", false, &mut out);
    assert!(!slots.fails_first(a) && !slots.fails_first(c), "beside it");
    slots.answer(a, &reply(Outcome::NotFound, 5), b"END\r\n", false, &mut out);
    assert!(!slots.fails_first(c), "it has had its turn");
    assert!(slots.fails_first(other), "of another request");
}

/// All replies, one behind the other, behind a head.
fn concat(parts: &mut Parts<'_>, out: &mut Assembly<'_>) {
    out.own().extend_from_slice(b"head ");
    (0..parts.count).for_each(|part| out.whole(parts, part));
}

#[test]
fn large_joined_reply_leaves_as_its_client_takes_it_and_is_not_buffered_twice() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let [a, b] = [0; 2].map(|_| slots.push_part(1, false, 0, Micros::ZERO));
    slots.close_parts(&Join::Parts(concat), &[], &mut out);
    let behind = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
    let (first, second) = (vec![b'a'; 3 * HIGH_WATER], vec![b'b'; 2 * HIGH_WATER]);
    for (seq, bytes) in [(b, &second), (a, &first)] {
        slots.begin(seq);
        slots.more(seq, bytes, &mut out);
        slots.finish(seq, &mut out);
    }
    slots.answer(behind, &reply(Outcome::Stored, 0), b" behind", false, &mut out);
    let all = [b"head ", &first[..], &second[..], b" behind"].concat();
    let (mut taken, mut turns) = (Vec::new(), 0);
    while taken.len() < all.len() {
        assert!(out.len() <= HIGH_WATER + b" behind".len(), "{}", out.len());
        assert!(slots.buffered() <= first.len() + second.len() + b" behind".len());
        taken.append(&mut out);
        assert_eq!(slots.is_leaving(), taken.len() < all.len() - b" behind".len());
        slots.go_on(&mut out);
        turns += 1;
    }
    assert!(taken == all && turns == 6, "{turns} turns");
    assert!(slots.is_empty() && slots.buffered() == 0 && !slots.is_leaving());
}

/// A reply of which the last five bytes are a trailer.
fn shared(bytes: &Arc<[u8]>, own: Option<(&[u8], usize)>, tail: &'static [u8]) -> SharedReplyRest {
    SharedReplyRest::new(SharedReply { own, bytes, tail }, 5)
}

#[test]
fn lent_value_has_a_tail_and_leaves_without_its_trailer() {
    let bytes: Arc<[u8]> = vec![b'a'; 2 * HIGH_WATER].into();
    for (tail, left) in [(&b"\r\nEND\r\n"[..], &b"\r\n"[..]), (b"END\r\n", b"")] {
        let mut shared = shared(&bytes, Some((b"head ", 0)), tail);
        let (mut out, mut taken) = (Vec::new(), Vec::new());
        while !shared.leave(&mut out) {
            taken.append(&mut out);
        }
        taken.append(&mut out);
        assert!(taken == [b"head ", &bytes[..], left].concat(), "{}", taken.len());
    }
}

#[test]
fn lent_reply_leaves_in_its_turn_as_its_client_takes_it_and_is_paid_for_together() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let bytes: Arc<[u8]> = vec![b'a'; 3 * HIGH_WATER].into();
    let others = [(); 2].map(|()| Arc::clone(&bytes));
    let first = slots.push(1, false, ReplyRole::Whole, 0, Micros::ZERO);
    let [link, broken] = [0; 2].map(|_| slots.push(1, false, ReplyRole::Body, 0, Micros::ZERO));
    slots.close(&Join::Concat { end: b"END\r\n" }, &mut out);
    slots.answer_shared(link, shared(&bytes, Some((b"own ", 10)), b""), &mut out);
    assert_eq!(
        slots.buffered(),
        b"own ".len() + bytes.len() / 4,
        "four have the bytes"
    );
    slots.answer(broken, &reply(Outcome::Timeout, 0), b"E\r\n", false, &mut out);
    assert!(out.is_empty(), "it is not its turn");
    slots.answer(first, &reply(Outcome::Stored, 0), b"first ", false, &mut out);
    let all = [b"first own ", &bytes[10..bytes.len() - 5], b"E\r\n"].concat();
    let mut taken = Vec::new();
    while !slots.is_empty() {
        assert!(out.len() <= HIGH_WATER + b"E\r\n".len(), "{}", out.len());
        taken.append(&mut out);
        slots.go_on(&mut out);
    }
    taken.append(&mut out);
    assert!(
        taken == all && slots.buffered() == 0,
        "{} of {}",
        taken.len(),
        all.len()
    );
    assert_eq!(
        Arc::strong_count(&bytes),
        1 + others.len(),
        "nobody has them any more"
    );
}

#[test]
fn lent_reply_behind_a_failed_part_does_not_leave() {
    let (mut slots, mut out) = (Slots::default(), Vec::new());
    let bytes: Arc<[u8]> = vec![b'a'; 2 * HIGH_WATER].into();
    let [failed, link] = [0; 2].map(|_| slots.push(1, false, ReplyRole::Body, 0, Micros::ZERO));
    slots.close(&Join::Concat { end: b"END\r\n" }, &mut out);
    slots.answer_shared(link, shared(&bytes, None, b""), &mut out);
    slots.answer(failed, &reply(Outcome::Timeout, 0), b"E\r\n", false, &mut out);
    assert_eq!(out, b"E\r\n");
    assert!(slots.is_empty() && slots.buffered() == 0);
}
