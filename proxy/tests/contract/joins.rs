//! Requests for several keys, each of which belongs to one server, and the joining of their replies.

use std::net::TcpListener;

use crate::{
    client::Client,
    conversation::{each, over},
    lines::LINES,
    proxy::PATIENT,
};

const ROUTES: [&str; 3] = ["p", "{failover: p}", "{log: p}"];

/// More keys than are asked for at a time.
fn keys() -> Vec<String> {
    (0..1000).map(|number| format!("key{number}")).collect()
}

#[test]
fn values_of_many_keys_are_set_listed_and_summed_across_servers() {
    for route in ROUTES {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            let pairs: Vec<String> = keys().iter().map(|key| format!("{key} of-{key}")).collect();
            assert_eq!(
                client.ask(&format!("PAIRS {}", pairs.join(" "))).unwrap(),
                "+",
                "{route}"
            );
            // Requests before and behind it are not mixed in, in however many pieces it comes.
            let asked = format!("GET key7\nSOME {} nothing\nGET key8\n", keys().join(" "));
            client.say_slowly(&asked, 7).unwrap();
            assert!(client.hear().unwrap().starts_with("= of-key7 of "));
            assert_eq!(client.hear().unwrap(), "* 1001");
            let mut servers = [0; 2];
            for key in keys() {
                let value = client.hear().unwrap();
                let server = value.strip_prefix(&format!("= of-{key} of ")).map(str::to_owned);
                servers[usize::from(server.unwrap_or_else(|| panic!("{route}: {value}")) == "two")] += 1;
            }
            assert!(
                servers.iter().all(|&count| count > 300) || route.contains("failover"),
                "{servers:?}"
            );
            assert_eq!(client.hear().unwrap(), "= nothing");
            assert!(client.hear().unwrap().starts_with("= of-key8 of "));
            let taken = format!("TAKE {}", keys()[100..].join(" "));
            assert_eq!(client.ask(&taken).unwrap(), "# 900", "{route}");
            assert_eq!(
                client.ask(&format!("TAKE {} a b", keys().join(" "))).unwrap(),
                "# 100",
                "{route}"
            );
            assert_eq!(client.ask("TAKE key1").unwrap(), "# 0");
            let requests = proxy.metrics().requests;
            assert!(
                requests.iter().sum::<u64>() < 100,
                "one for each line, and not for each key"
            );
        });
    }
}

/// In a list an error has its place. A sum is replaced by the first error.
#[test]
fn an_error_of_one_key_stands_at_its_place_in_the_list() {
    for route in ROUTES {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            assert_eq!(client.ask("PAIRS a 1 b 2").unwrap(), "+");
            client
                .say("SOME a failed wrong b\nTAKE a failed b\nTAKE a b\n")
                .unwrap();
            assert_eq!(client.hear().unwrap(), "* 4");
            for (key, expected) in [
                ("a", "= 1 of "),
                ("failed", "? "),
                ("wrong", "~ wrong for "),
                ("b", "= 2 of "),
            ] {
                let answer = client.hear().unwrap();
                assert!(answer.starts_with(expected), "{route}, {key}: {answer}");
            }
            assert!(client.hear().unwrap().ends_with(" has failed"));
            // The keys that were taken stay taken.
            assert_eq!(client.hear().unwrap(), "# 0");
        });
    }
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    over("p", &[|| gone], PATIENT, &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        client.say("SOME a b\nTAKE a b c\nPAIRS a 1 b 2\nWHAT\n").unwrap();
        assert_eq!(client.hear().unwrap(), "* 2");
        for _ in 0..4 {
            let answer = client.hear().unwrap();
            assert!(answer.starts_with(&format!("? proxy: {gone}: ")), "{answer}");
        }
        assert_eq!(client.hear().unwrap(), "? no such command");
    });
}

/// The client leaves before it has the whole list, and another one asks for the same.
#[test]
fn a_client_that_leaves_in_mid_list_affects_no_other_client() {
    each("p", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let line = format!("SOME {}\n", keys().join(" "));
        for _ in 0..20 {
            Client::new(proxy.address).say(&line).unwrap();
        }
        client.say(&line).unwrap();
        assert_eq!(client.hear().unwrap(), "* 1000");
        for _ in keys() {
            assert_eq!(client.hear().unwrap(), "= nothing");
        }
        assert_eq!(client.ask("GET k").unwrap(), "= nothing");
    });
}
