//! Logins, replies of many parts and refusals, on each back end.

use std::{net::SocketAddr, thread};

use proxima::{control::probe, protocol::Protocols};

use crate::{
    client::Client,
    lines::{LINES, Lines},
    proxy::{PATIENT, Proxy, Served, back_ends},
    server,
};

static GUESSED: Lines = Lines::new("guessed");
static STRANGER: Protocols = Protocols::new(&[&GUESSED]);

/// Runs a test on every back end, over two servers.
pub(crate) fn each(route: &str, protocols: &Protocols, test: impl Fn(&Proxy)) {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    over(route, &servers, PATIENT, protocols, test);
}

/// Runs a test on every back end, over servers that are started for each.
pub(crate) fn over(
    route: &str,
    servers: &[impl Fn() -> SocketAddr],
    settings: &str,
    protocols: &Protocols,
    test: impl Fn(&Proxy),
) {
    for io in back_ends() {
        let served = Served {
            protocol: "lines",
            pool: "p",
            servers: servers.iter().map(|start| start().to_string()).collect(),
            route,
            settings,
            listener: "",
        };
        test(&Proxy::start(io, *protocols, &[served]).unwrap());
    }
}

/// The reply to `MANY key count`.
fn parts(key: &str, count: usize) -> Vec<String> {
    let mut lines: Vec<_> = (0..count)
        .map(|part| format!("- part {part} of {key} {}", "x".repeat(50)))
        .collect();
    lines.push(format!(". {count}"));
    lines
}

#[test]
fn requests_behind_greeting_login_and_transform_are_served() {
    each("p", &LINES, |proxy| {
        let mut clients: Vec<Client> = (0..20).map(|_| Client::new(proxy.address)).collect();
        for (number, client) in clients.iter_mut().enumerate() {
            assert_eq!(client.ask(&format!("PUT k{number} v{number}")).unwrap(), "+");
        }
        for (number, client) in clients.iter_mut().enumerate() {
            let reply = client.ask(&format!("GET k{number}")).unwrap();
            assert!(reply.starts_with(&format!("= v{number} of ")), "{reply}");
            assert_eq!(client.ask("GET other").unwrap(), "= nothing");
        }
        let metrics = proxy.metrics();
        assert_eq!((metrics.open_lanes, metrics.open_clients), (2, 20));
        // One push comes with the greeting, and one with each get.
        assert!(metrics.pushes >= 40, "{} pushes", metrics.pushes);
    });
}

#[test]
fn a_pipeline_in_pieces_is_answered_in_order() {
    each("p", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let lines: Vec<String> = (0..50)
            .map(|n| format!("PUT key{n} value{n}\nGET key{n}\nMANY key{n} {}\n", n % 3))
            .collect();
        client.say_slowly(&lines.concat(), 25).unwrap();
        for n in 0..50 {
            assert_eq!(client.hear().unwrap(), "+");
            let value = client.hear().unwrap();
            assert!(value.starts_with(&format!("= value{n} of ")), "{value}");
            assert_eq!(client.hear_many().unwrap(), parts(&format!("key{n}"), n % 3));
        }
    });
}

/// A key may be longer than memcached's, and of characters that memcached refuses.
#[test]
fn a_long_key_of_odd_characters_is_served_by_the_same_server() {
    let keys = ["k".repeat(10_000), "\t\u{1}\0\u{7f}é\u{10ffff}".repeat(500)];
    for route in ["p", "{failover: p}", "{log: p}"] {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            for key in &keys {
                let put = format!("PUT {key} v\n");
                client.say_slowly(&put, 5).unwrap();
                assert_eq!(client.hear().unwrap(), "+", "{route}");
                for _ in 0..5 {
                    let value = client.ask(&format!("GET {key}")).unwrap();
                    assert!(value.starts_with("= v of "), "{route}: {value}");
                }
                let asked = format!("SOME a {key} b");
                client
                    .say(&format!("{asked}\nPAIRS {key} w x y\nTAKE x {key}\n"))
                    .unwrap();
                assert_eq!(client.hear().unwrap(), "* 3", "{route}");
                assert_eq!(client.hear().unwrap(), "= nothing", "{route}");
                assert!(client.hear().unwrap().starts_with("= v of "), "{route}");
                assert_eq!(client.hear().unwrap(), "= nothing", "{route}");
                assert_eq!(client.hear().unwrap(), "+", "{route}");
                assert!(client.hear().unwrap().starts_with("# "), "{route}");
            }
        });
    }
}

#[test]
fn replies_of_many_parts_reach_their_client_directly_and_through_flights() {
    for route in [
        "p",
        "{failover: p}",
        "{all_sync: p}",
        "{all_fastest: p}",
        "{log: p}",
    ] {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            for count in [0, 1, 10, 5000] {
                client.say(&format!("MANY k {count}\n")).unwrap();
                assert_eq!(
                    client.hear_many().unwrap(),
                    parts("k", count),
                    "{route}, {count} parts"
                );
            }
            // Other clients are served meanwhile and afterwards.
            let mut other = Client::new(proxy.address);
            client.say("MANY k 5000\nMANY l 2\n").unwrap();
            assert_eq!(other.ask("PUT k v").unwrap(), "+", "{route}");
            assert_eq!(client.hear_many().unwrap(), parts("k", 5000), "{route}");
            assert_eq!(client.hear_many().unwrap(), parts("l", 2), "{route}");
        });
    }
}

/// A lane that was held back for one reader serves others again when the last part has come.
#[test]
fn readers_of_replies_in_parts_never_stop_other_clients() {
    each("p", &LINES, |proxy| {
        let address = proxy.address;
        thread::scope(|scope| {
            for reader in 0..3 {
                scope.spawn(move || {
                    let mut client = Client::new(address);
                    for _ in 0..10 {
                        client.say(&format!("MANY k{reader} 20000\n")).unwrap();
                        assert_eq!(client.hear_many().unwrap().len(), 20_001);
                    }
                });
            }
            let mut other = Client::new(address);
            for number in 0..200 {
                assert_eq!(other.ask(&format!("PUT k{number} v")).unwrap(), "+");
            }
        });
    });
}

#[test]
fn a_reply_that_breaks_off_between_parts_is_never_taken_as_whole() {
    each("p", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        client.say("MANY broken 2\n").unwrap();
        let heard: Vec<_> = std::iter::from_fn(|| client.hear().ok()).collect();
        assert!(heard.is_empty() || heard == ["- and then"], "{heard:?}");
        assert_eq!(Client::new(proxy.address).ask("PUT k v").unwrap(), "+");
    });
    // A route that waits for the whole reply can still answer an error.
    each("{all_sync: p}", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let answer = client.ask("MANY broken 2").unwrap();
        assert!(answer.starts_with("? proxy: 127.0.0.1:"), "{answer}");
        assert!(answer.ends_with(": Connection closed by the server"), "{answer}");
        assert_eq!(client.ask("PUT k v").unwrap(), "+");
    });
}

#[test]
fn a_client_with_a_wrong_password_gets_an_error_and_is_closed() {
    each("p", &LINES, |proxy| {
        let mut client = Client::connect(proxy.address, "guessed");
        client.say("GET k\n").unwrap();
        assert_eq!(client.hear().unwrap(), "DENIED");
        assert!(client.hear().is_err());
    });
}

#[test]
fn requests_about_a_connection_do_not_reach_shared_lanes() {
    each("p", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        assert_eq!(
            client.ask("BYE").unwrap(),
            "? proxy: the proxy cannot tell which server this is for"
        );
        assert_eq!(client.ask("PUT k v").unwrap(), "+");
    });
}

#[test]
fn a_route_that_cannot_change_the_protocols_requests_answers_an_error() {
    each("{modify_key: {child: p, ensure_prefix: x}}", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let reply = client.ask("GET k").unwrap();
        assert!(
            reply.starts_with("? proxy: GET is not served below modify_key: "),
            "{reply}"
        );
        assert_eq!(client.ask("GET xk").unwrap(), "= nothing");
    });
}

#[test]
fn a_server_that_refuses_the_login_counts_as_failed() {
    each("p", &STRANGER, |proxy| {
        let mut client = Client::new(proxy.address);
        let answer = client.ask("GET k").unwrap();
        let is_named = answer.starts_with("? proxy: 127.0.0.1:");
        assert!(
            is_named && answer.ends_with(": the server said DENIED"),
            "{answer}"
        );
    });
}

#[test]
fn a_probe_logs_in_as_a_lane_does() {
    each("p", &LINES, |proxy| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(probe(&proxy.members[0])).unwrap();
    });
    each("p", &STRANGER, |proxy| {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let error = runtime.block_on(probe(&proxy.members[0])).unwrap_err();
        assert_eq!(error.to_string(), "the server said DENIED");
    });
}
