//! Requests with one reply, with none, or with nested replies, and negative replies.

use std::{net::TcpListener, sync::atomic::Ordering::Relaxed, thread, time::Duration};

use proxima::protocol::Protocols;

use crate::{
    client::Client,
    conversation::{each, over},
    lines::{LINES, Lines},
    proxy::PATIENT,
    server::{self, PASSWORD, nested},
};

const ROUTES: [&str; 5] = [
    "p",
    "{failover: p}",
    "{all_sync: p}",
    "{all_fastest: p}",
    "{log: p}",
];

#[test]
fn nested_replies_are_one_reply() {
    for route in ROUTES {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            for count in [0, 1, 10, 3000] {
                // The next reply must not be taken for a part of this one.
                client.say(&format!("NEST k {count}\nPUT k v\n")).unwrap();
                let heard = client.hear_nested().unwrap();
                assert!(heard == nested("k", count), "{route}, {count} replies: {heard:?}");
                assert_eq!(client.hear().unwrap(), "+", "{route}");
            }
            let mut clients: Vec<Client> = (0..5).map(|_| Client::new(proxy.address)).collect();
            for (number, client) in clients.iter_mut().enumerate() {
                client.say(&format!("NEST k{number} {}\n", 10 * number)).unwrap();
            }
            for (number, client) in clients.iter_mut().enumerate() {
                let expected = nested(&format!("k{number}"), 10 * number);
                assert_eq!(client.hear_nested().unwrap(), expected, "{route}");
            }
        });
    }
}

/// The number of pieces in which a message comes does not matter.
#[test]
fn a_message_in_pieces_is_parsed_only_once() {
    static COUNTED: Lines = Lines::new(PASSWORD);
    static DIALECTS: Protocols = Protocols::new(&[&COUNTED]);
    each("p", &DIALECTS, |proxy| {
        let mut client = Client::new(proxy.address);
        let lines: Vec<String> = (0..600)
            .map(|number| format!("key{number} value{number}\n"))
            .collect();
        let batch = format!("BATCH k 600\n{}", lines.concat());
        COUNTED.read.store(0, Relaxed);
        client.say_slowly(&batch, 100).unwrap();
        assert_eq!(client.hear().unwrap(), "+");
        client.say("NEST k 2000\n").unwrap();
        let heard = client.hear_nested().unwrap();
        assert!(heard == nested("k", 2000));
        let (read, sent) = (COUNTED.read.load(Relaxed), batch.len() + heard.join("\n").len());
        // The beginning of a line whose end is missing is read once more.
        assert!(read < 2 * sent as u64, "{read} bytes were read of {sent}");
    });
}

#[test]
fn a_request_of_many_lines_is_one_request() {
    each("p", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        client
            .say_slowly("GET k\nBATCH k 3\nk v\nk w\nk x\nGET k\nBATCH k 0\nGET k\n", 13)
            .unwrap();
        assert_eq!(client.hear().unwrap(), "= nothing");
        assert_eq!(client.hear().unwrap(), "+");
        let value = client.hear().unwrap();
        assert!(value.starts_with("= x of "), "{value}");
        assert_eq!(client.hear().unwrap(), "+");
        assert_eq!(client.hear().unwrap(), value);
    });
}

#[test]
fn a_request_without_a_reply_delays_no_other() {
    for route in ROUTES {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            let lines: Vec<String> = (0..50)
                .map(|n| format!("TELL k v{n}\nGET k\nTELL l w\nPUT l x\n"))
                .collect();
            client.say_slowly(&lines.concat(), 25).unwrap();
            for n in 0..50 {
                let value = client.hear().unwrap();
                assert!(value.starts_with(&format!("= v{n} of ")), "{route}: {value}");
                assert_eq!(client.hear().unwrap(), "+", "{route}");
            }
            // The slower server of a gather may still have to answer.
            let ends = (0..1000).any(|_| {
                thread::sleep(Duration::from_millis(10));
                proxy.metrics().in_flight == 0
            });
            assert!(ends, "{route}: somebody waits for a reply that never comes");
        });
    }
}

/// A client that expects no reply would take an error for the answer to its next request.
#[test]
fn a_failed_request_without_a_reply_has_no_error() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for route in ROUTES {
        over(route, &[|| gone], PATIENT, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            client.say("TELL k v\nTELL k v\nGET k\nWHAT\n").unwrap();
            let answer = client.hear().unwrap();
            assert!(answer.starts_with("? proxy: "), "{route}: {answer}");
            assert_eq!(client.hear().unwrap(), "? no such command", "{route}");
        });
    }
}

#[test]
fn a_server_of_fewer_commands_gets_only_the_commands_that_it_knows() {
    for route in ["p", "{log: p}"] {
        over(route, &[|| server::start("old")], PATIENT, &LINES, |proxy| {
            // All requests wait for the login.
            let mut client = Client::new(proxy.address);
            client
                .say("TELL k v\nBATCH k 1\nk w\nGET k\nTELL k x\nPUT l y\nBATCH k 0\nGET k\n")
                .unwrap();
            let expected = [
                "? proxy: 127.0.0.1",
                "= v of ",
                "+",
                "? proxy: 127.0.0.1",
                "= x of ",
            ];
            for expected in expected {
                let answer = client.hear().unwrap();
                assert!(
                    answer.starts_with(expected),
                    "{route}: {answer} instead of {expected}"
                );
            }
        });
    }
}

/// Only a server that fails is failed over from, and counts a failure.
#[test]
fn a_negative_reply_neither_fails_over_nor_ejects() {
    each("{failover: [p, p]}", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let errors = || -> u64 {
            proxy
                .metrics()
                .members
                .iter()
                .map(|member| member.outcomes.errors())
                .sum()
        };
        for _ in 0..10 {
            let answer = client.ask("GET wrong").unwrap();
            assert!(answer.starts_with("~ wrong for "), "{answer}");
        }
        assert_eq!((proxy.metrics().failovers, errors()), (0, 0));
        let answer = client.ask("GET failed").unwrap();
        assert!(answer.ends_with(" has failed"), "{answer}");
        assert_eq!((proxy.metrics().failovers, errors()), (1, 2));
    });
}
