//! A transform that begins in the middle of a login, and knows the connection's listener or server.

use proxima::{control::probe, protocol::Protocols};

use crate::{
    client::Client,
    lines::{Lines, answer},
    proxy::{PATIENT, Proxy, Served, back_ends},
    scramble::Scramble,
    server::{self, PASSWORD},
    tls::{self, LISTENER, Tls},
};

static LATE: Lines = Lines::late(PASSWORD);
static LINES: Protocols = Protocols::new(&[&LATE]);
static LATE_WITH_TLS: Lines = Lines::late_tls(PASSWORD);
static TLS: Protocols = Protocols::new(&[&LATE_WITH_TLS]);

/// Runs a test on every back end, over a server of this name, with two listeners. Only the first can be
/// upgraded.
fn each(name: &'static str, test: impl Fn(&Proxy)) {
    over(LINES, name, |_| (String::new(), String::new()), test);
}

/// What the pool of the server at this address says of TLS, and what its listener does.
fn with_tls(address: &str) -> (String, String) {
    (tls::pool(address), tls::listener())
}

/// `says`: what the pool of a server at an address says further, and what its listener does.
fn over(
    protocols: Protocols,
    name: &'static str,
    says: impl Fn(&str) -> (String, String),
    test: impl Fn(&Proxy),
) {
    for io in back_ends() {
        let servers = ["p", "q"].map(|pool| (pool, server::start(name).to_string()));
        let said = servers.map(|(pool, address)| {
            let (settings, listener) = says(&address);
            (pool, address, format!("{PATIENT}, {settings}"), listener)
        });
        let served = said.each_ref().map(|(pool, address, settings, listener)| Served {
            protocol: "lines",
            pool,
            servers: vec![address.clone()],
            route: pool,
            settings,
            listener,
        });
        test(&Proxy::start(io, protocols, &served).unwrap());
    }
}

/// Whether a probe of the first server finds it well.
fn is_well(proxy: &Proxy) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(probe(&proxy.members[0])).is_ok()
}

#[test]
fn a_login_goes_on_behind_its_transform() {
    each("late", |proxy| {
        for _ in 0..3 {
            let mut client = Client::late(proxy.address);
            assert_eq!(client.ask("PUT k v").unwrap(), "+");
            assert_eq!(client.ask("GET k").unwrap(), "= v of late");
        }
        assert!(is_well(proxy));
    });
}

#[test]
fn a_login_goes_on_behind_tls_and_large_messages_follow() {
    over(TLS, "late, with TLS", with_tls, |proxy| {
        let value = "v".repeat(300_000);
        for round in 0..3 {
            let mut client = Client::tls(proxy.address);
            assert_eq!(client.ask(&format!("PUT k {round}")).unwrap(), "+");
            assert_eq!(
                client.ask("GET k").unwrap(),
                format!("= {round} of late, with TLS")
            );
            client.say("NEST k 3000\nGET k\n").unwrap();
            assert!(client.hear_nested().unwrap() == server::nested("k", 3000));
            assert!(client.hear().unwrap().starts_with("= "));
            client
                .say_slowly(&format!("BLOB b {}\n{value}GET b\n", value.len()), 7)
                .unwrap();
            assert_eq!(client.hear().unwrap(), "+");
            let expected = server::digest(value.as_bytes());
            assert_eq!(client.hear().unwrap(), format!("= {expected} of late, with TLS"));
        }
        assert!(is_well(proxy));
    });
}

/// As a compressed protocol inside TLS.
#[test]
fn a_transform_of_the_protocols_own_goes_through_tls() {
    over(LINES, "late, behind TLS", with_tls, |proxy| {
        let value = "v".repeat(100_000);
        for round in 0..3 {
            let mut client = Client::stacked(proxy.address);
            assert_eq!(client.ask(&format!("PUT k {round}")).unwrap(), "+");
            let expected = format!("= {round} of late, behind TLS");
            assert_eq!(client.ask("GET k").unwrap(), expected);
            client
                .say_slowly(&format!("BLOB b {}\n{value}GET k\n", value.len()), 7)
                .unwrap();
            assert_eq!(client.hear().unwrap(), "+");
            assert_eq!(client.hear().unwrap(), expected);
        }
        assert!(is_well(proxy));
    });
}

#[test]
fn a_server_that_cannot_prove_its_name_gets_no_login() {
    let elsewhere = |_: &str| (tls::pool_of("elsewhere.test"), tls::listener());
    over(TLS, "late, with TLS", elsewhere, |proxy| {
        let answer = Client::tls(proxy.address).ask("GET k").unwrap();
        assert!(answer.starts_with("? proxy"), "{answer}");
        assert!(!is_well(proxy));
    });
}

/// As MySQL's clients do.
#[test]
fn a_client_need_not_wait_for_the_answer_before_its_transform_begins() {
    let login = format!("LOGIN app {}\n", answer("pepper", "open sesame"));
    each("late", |proxy| {
        // All that it has to say comes in one piece, a request included.
        let scramble = Box::new(Scramble::connecting(7));
        let mut client = Client::eager(proxy.address, scramble, &format!("{login}PUT k v\n"));
        assert_eq!(client.hear().unwrap(), "WELCOME");
        assert_eq!(client.hear().unwrap(), "+");
        assert_eq!(client.ask("GET k").unwrap(), "= v of late");
    });
    over(TLS, "late, with TLS", with_tls, |proxy| {
        for _ in 0..3 {
            let tls = Box::new(Tls::connecting(LISTENER.to_owned()));
            let mut client = Client::eager(proxy.address, tls, "");
            client.say(&login).unwrap();
            assert_eq!(client.hear().unwrap(), "WELCOME");
            assert_eq!(client.ask("PUT k v").unwrap(), "+");
        }
    });
}

/// One client uses the listener that does not offer the transform, and another one does not ask for it.
#[test]
fn an_upgrade_that_is_not_offered_or_not_asked_for_is_refused() {
    each("late", |proxy| {
        let (mut client, answer) = Client::plain(proxy.addresses[1], "SECURE\n");
        assert!(answer.is_ok_and(|answer| answer == "GO") && client.is_closed());
        let (mut client, _) = Client::plain(proxy.address, "LOGIN app 12345678\nGET k\n");
        assert!(client.is_closed());
        assert_eq!(proxy.metrics().requests.iter().sum::<u64>(), 0);
    });
}

/// An attacker between the two sides could insert bytes that are read as if they came behind the handshake.
#[test]
fn plain_bytes_behind_an_upgrade_are_refused() {
    each("late", |proxy| {
        let (mut client, _) = Client::plain(proxy.address, "SECURE\nGET k\n");
        assert!(client.is_closed());
        assert_eq!(proxy.metrics().requests.iter().sum::<u64>(), 0);
        assert!(Client::late(proxy.address).ask("GET k").is_ok());
    });
    for name in ["late, and more", "late, in steps"] {
        each(name, |proxy| {
            let answer = Client::late(proxy.address).ask("GET k").unwrap();
            assert!(
                answer.ends_with("the login cannot be upgraded here"),
                "{name}: {answer}"
            );
        });
    }
}
