//! What a real memcached said, against what the codec says.

use crate::capture::{self, Exchange};
use proxima_wire::memcache::{
    Command, Limits, default_reply, is_reply_whole, is_value_end, reply, request, silenced,
};
use proxima_wire::message::{Bad, Parsed, Request};

/// memcached's own default limit, so that it refuses what we refuse.
const LIMITS: Limits = Limits { value: 1 << 20 };

fn good(exchange: &Exchange) -> (Request, Command) {
    match request(&exchange.request, &LIMITS) {
        Parsed::Head(request) => (request, Command::from_number(request.command).unwrap()),
        other => panic!("{}: {other:?}", exchange.place),
    }
}

#[test]
fn every_accepted_request_is_one_message_with_one_reply() {
    for exchange in ["text.txt", "meta.txt", "miss.txt"]
        .into_iter()
        .flat_map(capture::read)
    {
        let place = &exchange.place;
        let (request, command) = good(&exchange);
        assert_eq!(request.len(), exchange.request.len() as u64, "{place}");
        assert!(
            request.body == 0 || is_value_end(&exchange.request[exchange.request.len() - 2..]),
            "{place}"
        );
        if exchange.reply.is_empty() {
            assert!(request.is_quiet || command == Command::Quit, "{place}");
            continue;
        }
        let Parsed::Head(reply) = reply(command, &exchange.reply) else {
            panic!("{place}")
        };
        assert_eq!(reply.len(), exchange.reply.len() as u64, "{place}");
        assert!(is_reply_whole(&reply, &exchange.reply), "{place}");
        assert!(
            !request.is_quiet || !silenced(command, reply.outcome),
            "{place}: not silent"
        );
    }
}

#[test]
fn every_refusal_is_memcacheds() {
    for exchange in capture::read("refused.txt") {
        let place = &exchange.place;
        let Parsed::Bad(Bad {
            reply,
            head,
            swallow,
            close,
            ..
        }) = request(&exchange.request, &LIMITS)
        else {
            panic!("{place}: {:?}", request(&exchange.request, &LIMITS))
        };
        // A key that is too long is answered with an empty line more by `get`, which nobody can want.
        let theirs = exchange.reply.escape_ascii().to_string();
        let theirs = theirs
            .strip_suffix(r"\r\n\r\n")
            .map_or(theirs.clone(), |line| format!(r"{line}\r\n"));
        assert_eq!(reply.escape_ascii().to_string(), theirs, "{place}");
        assert_eq!(close, exchange.closed, "{place}");
        if !close {
            assert_eq!(
                u64::from(head) + swallow,
                exchange.request.len() as u64,
                "{place}"
            );
        }
    }
}

#[test]
fn what_memcached_misreads_is_refused() {
    for exchange in capture::read("stricter.txt") {
        let parsed = request(&exchange.request, &LIMITS);
        assert!(matches!(parsed, Parsed::Bad(_)), "{}: {parsed:?}", exchange.place);
    }
}

#[test]
fn an_empty_cache_answers_like_memcached() {
    for exchange in capture::read("miss.txt") {
        let (request, command) = good(&exchange);
        let mut out = Vec::new();
        let outcome = default_reply(&request, &exchange.request, &mut out);
        assert_eq!(
            out.escape_ascii().to_string(),
            exchange.reply.escape_ascii().to_string(),
            "{}",
            exchange.place
        );
        let Parsed::Head(reply) = reply(command, &out) else {
            panic!("{}", exchange.place)
        };
        assert_eq!(reply.outcome, outcome, "{}", exchange.place);
    }
}
