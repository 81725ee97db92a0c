//! The codec's readings and answers, checked against the recorded answers of a real memcached.

use crate::capture::{self, Exchange};
use crate::rows::each_row;
use proxima_wire::memcache::{
    Command, Limits, default_reply, is_reply_whole, is_value_end, reply, request, silenced,
};
use proxima_wire::message::{Bad, Parsed, Request};

/// memcached's own default limit, so that it refuses the same values as the codec.
const LIMITS: Limits = Limits {
    value: 1 << 20,
    mcrouters: false,
};

fn good(exchange: &Exchange) -> (Request, Command) {
    match request(&exchange.request, &LIMITS) {
        Parsed::Head(request) => (request, Command::from_number(request.command).unwrap()),
        other => panic!("{}: {other:?}", exchange.place),
    }
}

#[test]
fn captured_requests_are_each_one_message_with_one_reply() {
    let files = ["text.txt", "meta.txt", "miss.txt"];
    each_row(files.into_iter().flat_map(capture::read), |exchange| {
        let place = &exchange.place;
        let (request, command) = good(exchange);
        assert_eq!(request.len(), exchange.request.len() as u64, "{place}");
        assert!(
            request.body == 0 || is_value_end(&exchange.request[exchange.request.len() - 2..]),
            "{place}"
        );
        if exchange.reply.is_empty() {
            assert!(request.is_quiet || command == Command::Quit, "{place}");
            return;
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
    });
}

#[test]
fn captured_refusals_are_answered_as_by_memcached() {
    each_row(capture::read("refused.txt"), |exchange| {
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
        // memcached answers a `get` of a key that is too long with one more empty line, which no client
        // needs.
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
    });
}

#[test]
fn lines_that_memcached_misreads_are_refused() {
    each_row(capture::read("stricter.txt"), |exchange| {
        let parsed = request(&exchange.request, &LIMITS);
        assert!(matches!(parsed, Parsed::Bad(_)), "{}: {parsed:?}", exchange.place);
    });
}

#[test]
fn default_replies_are_those_of_an_empty_memcached() {
    each_row(capture::read("miss.txt"), |exchange| {
        let (request, command) = good(exchange);
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
    });
}
