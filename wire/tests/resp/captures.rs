//! What real servers said, replayed at every split.

use proxima_wire::{message::Bad, resp::Expect};

use crate::{
    capture::{self, Exchange},
    rows::each_row,
    session::{Asked, LIMITS, Said, requests, said},
};

/// The ends of the first pieces: every one of a short message, and some of a long one.
fn splits(bytes: &[u8]) -> impl Iterator<Item = [&[u8]; 2]> {
    let step = bytes.len() / 200 + 1;
    (0..bytes.len()).step_by(step).map(|at| {
        let (first, second) = bytes.split_at(at);
        [first, second]
    })
}

fn check(exchange: &Exchange, expect: Expect) {
    let place = &exchange.place;
    let whole = requests([&exchange.request[..]], &LIMITS);
    let (mut bytes, mut asked) = (Vec::new(), 0);
    for request in &whole {
        let (Asked::Good(_, of)
        | Asked::Bad(
            Bad {
                reply: b"",
                close: false,
                ..
            },
            of,
        )) = request
        else {
            panic!("{place}: {request:?}")
        };
        bytes.extend_from_slice(of);
        asked += usize::from(matches!(request, Asked::Good(..)));
    }
    assert!(bytes == exchange.request, "{place}");
    for pieces in splits(&exchange.request) {
        assert!(
            requests(pieces, &LIMITS) == whole,
            "{place} at {}",
            pieces[0].len()
        );
    }
    let is_subscription = exchange.request.windows(9).any(|word| word == b"SUBSCRIBE");
    let answered = said(expect, [&exchange.reply[..]]);
    let replies = answered.iter().filter(|said| matches!(said, Said::Reply(..)));
    let count = replies.count();
    match expect {
        Expect::Replies(_) => assert_eq!(count, 1, "{place}"),
        _ if is_subscription => assert!(count < asked, "{place}"),
        _ => assert_eq!(count, asked, "{place}"),
    }
    for pieces in splits(&exchange.reply) {
        assert!(said(expect, pieces) == answered, "{place} at {}", pieces[0].len());
    }
}

fn is_transaction(exchange: &Exchange) -> bool {
    let has = |word: &[u8]| exchange.request.windows(word.len()).any(|part| part == word);
    has(b"MULTI") && has(b"EXEC")
}

#[test]
fn captured_commands_have_one_reply_each_at_every_split() {
    let files = ["resp2.txt", "resp3.txt", "push3.txt", "inline.txt"];
    let all = files
        .into_iter()
        .flat_map(|file| capture::read(&format!("resp/{file}")));
    each_row(all, |exchange| {
        let expect = if is_transaction(exchange) {
            Expect::Replies(requests([&exchange.request[..]], &LIMITS).len() as u16)
        } else {
            Expect::Reply
        };
        check(exchange, expect);
    });
}

#[test]
fn captured_messages_to_a_subscriber_are_pushes_at_every_split() {
    each_row(capture::read("resp/subscriber2.txt"), |exchange| {
        check(exchange, Expect::Subscriber)
    });
}

#[test]
fn captured_refusals_are_answered_as_by_the_server() {
    // A server knows the first words of HTTP only as commands.
    let all = capture::read("resp/refused.txt");
    let by_length = all.into_iter().filter(|exchange| !exchange.reply.is_empty());
    each_row(by_length, |exchange| {
        assert!(exchange.closed, "{}", exchange.place);
        for pieces in splits(&exchange.request) {
            let refused = requests(pieces, &LIMITS);
            let [Asked::Bad(bad, _)] = &refused[..] else {
                panic!("{}: {refused:?}", exchange.place)
            };
            assert_eq!(
                bad.reply.escape_ascii().to_string(),
                exchange.reply.escape_ascii().to_string()
            );
            assert!(bad.close);
        }
    });
}
