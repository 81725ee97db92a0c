//! Sessions: what a client has said about itself changes how it is served.

use std::net::TcpListener;

use crate::{
    client::Client,
    conversation::{each, over},
    lines::LINES,
    proxy::PATIENT,
};

/// Also reads and writes of one key, and requests that are passed on as they come.
#[test]
fn a_session_sees_every_request() {
    each("p", &LINES, |proxy| {
        let (mut client, mut other) = (Client::new(proxy.address), Client::new(proxy.address));
        let no = "this belongs to somebody else";
        assert_eq!(client.ask("PUT bob:k v").unwrap(), "+");
        assert_eq!(client.ask("AS ann").unwrap(), "+");
        let large = format!("BATCH bob:k 5000\n{}", "bob:k something long\n".repeat(5000));
        client
            .say(&format!(
                "GET bob:k\nPUT bob:k w\nTELL bob:k w\n{large}PUT ann:k x\nGET ann:k\n"
            ))
            .unwrap();
        for _ in 0..3 {
            assert_eq!(client.hear().unwrap(), format!("? proxy to ann: {no}"));
        }
        assert_eq!(client.hear().unwrap(), "+");
        assert!(client.hear().unwrap().starts_with("= x of "));
        assert!(other.ask("GET bob:k").unwrap().starts_with("= v of "));
        assert_eq!(other.ask("AS bob").unwrap(), "+");
        other.say(&large).unwrap();
        assert_eq!(other.hear().unwrap(), "+");
        assert!(
            other
                .ask("GET bob:k")
                .unwrap()
                .starts_with("= something long of ")
        );
        assert_eq!(client.ask("AS ").unwrap(), "+");
        assert!(
            client
                .ask("GET bob:k")
                .unwrap()
                .starts_with("= something long of ")
        );
    });
}

/// This holds for every route through which the error comes back.
#[test]
fn an_error_is_written_in_the_words_of_the_session() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for route in [
        "p",
        "{failover: [p, p]}",
        "{all_sync: p}",
        "{all_majority: p}",
        "{log: p}",
        "{error: out of order}",
    ] {
        over(route, &[|| gone], PATIENT, &LINES, |proxy| {
            let (mut ann, mut nobody) = (Client::new(proxy.address), Client::new(proxy.address));
            assert_eq!(ann.ask("AS ann").unwrap(), "+");
            let expected = if route.contains("order") {
                "out of order".to_owned()
            } else {
                format!("{gone}: ")
            };
            for _ in 0..2 {
                let answer = ann.ask("GET k").unwrap();
                assert!(
                    answer.starts_with(&format!("? proxy to ann: {expected}")),
                    "{route}: {answer}"
                );
                let answer = nobody.ask("GET k").unwrap();
                assert!(
                    answer.starts_with(&format!("? proxy: {expected}")),
                    "{route}: {answer}"
                );
            }
        });
    }
}

#[test]
fn a_miss_is_written_in_the_form_of_the_session() {
    for route in ["{null: }", "{failover: [{null: }]}", "{all_async: p}"] {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            assert_eq!(client.ask("GET k").unwrap(), "? nothing");
            assert_eq!(client.ask("AS ann").unwrap(), "+");
            assert_eq!(client.ask("GET k").unwrap(), "? nothing for you");
        });
    }
}
