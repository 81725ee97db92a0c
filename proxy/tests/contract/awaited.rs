//! Requests that wait for the answer to what goes before them.

use proxima::protocol::Protocols;

use crate::{
    client::Client,
    conversation::over,
    dedicated::{self, hear},
    fitted::{ROUTES, one, ran},
    lines::Lines,
    proxy::{PATIENT, becomes},
    server::{self, PASSWORD, digest},
};

static KNOWN: Lines = Lines::fitting(PASSWORD);
static FITTING: Protocols = Protocols::new(&[&KNOWN]);

fn ask(client: &mut Client, line: &str) -> String {
    dedicated::ask(client, line).unwrap()
}

/// The server says if anything has come behind a text before it has taken that.
#[test]
fn nothing_is_sent_before_what_goes_before_it_is_answered() {
    for route in ROUTES {
        for name in ["one", "flaky"] {
            one(name, route, |proxy| {
                let mut clients: Vec<Client> = (0..4).map(|_| Client::new(proxy.address)).collect();
                let asked: String = (0..10)
                    .map(|n| format!("SURE k{n} sure {}\nPUT k{n} v{n}\nGET k{n}\n", n % 3))
                    .collect();
                for client in &mut clients {
                    client.say(&asked).unwrap();
                }
                for client in &mut clients {
                    for n in 0..10 {
                        let (_, all, _) = ran(
                            &hear(client).unwrap(),
                            &format!("k{n}"),
                            &format!("sure {}", n % 3),
                        );
                        assert!(all <= 3, "{route}: each is told once");
                        assert_eq!(hear(client).unwrap(), "+");
                        assert_eq!(hear(client).unwrap(), format!("= v{n} of {name}"));
                    }
                }
            });
        }
    }
}

#[test]
fn what_was_refused_before_a_request_is_its_answer_and_it_is_never_sent() {
    for route in ROUTES {
        one("one", route, |proxy| {
            let (mut ann, mut bob) = (Client::new(proxy.address), Client::new(proxy.address));
            let connection = ask(&mut ann, "WHO k");
            for _ in 0..3 {
                ann.say("SURE k sure bad\nSURE k sure good\nGET k\n").unwrap();
                bob.say("GET k\nSURE k sure bad\n").unwrap();
                assert_eq!(hear(&mut ann).unwrap(), "? one takes no sure bad", "{route}");
                ran(&hear(&mut ann).unwrap(), "k", "sure good");
                assert_eq!(hear(&mut ann).unwrap(), "= nothing");
                assert_eq!(hear(&mut bob).unwrap(), "= nothing");
                assert_eq!(hear(&mut bob).unwrap(), "? one takes no sure bad");
            }
            assert_eq!(ask(&mut bob, "WHO k"), connection, "it has never ended");
        });
    }
}

/// Otherwise its client would wait for ever, and the server would work for nobody.
#[test]
fn what_goes_before_a_request_without_an_end_is_its_error() {
    for route in ROUTES {
        one("one", route, |proxy| {
            let mut client = Client::new(proxy.address);
            for _ in 0..3 {
                let said = ask(&mut client, "SURE k sure endless");
                assert!(said.contains("what goes before it has no end"), "{route}: {said}");
                ran(&ask(&mut client, "SURE k sure t"), "k", "sure t");
            }
        });
    }
}

/// What is not answered in one piece is answered when its last one is here.
#[test]
fn a_long_answer_ends_the_wait() {
    for route in ROUTES {
        one("one", route, |proxy| {
            let mut client = Client::new(proxy.address);
            client.say("SURE k sure long\nGET k\n").unwrap();
            ran(&hear(&mut client).unwrap(), "k", "sure long");
            assert_eq!(hear(&mut client).unwrap(), "= nothing");
        });
    }
}

#[test]
fn a_value_waits_with_its_request_and_is_thrown_away_if_that_is_not_sent() {
    for route in ROUTES {
        one("one", route, |proxy| {
            // The first is here to its end before the server has answered.
            for size in [100_000, 1_000_000] {
                let value = "0123456789".repeat(size / 10);
                for pieces in [1, 9] {
                    for each in ["", "EACH k\n"] {
                        let mut client = Client::new(proxy.address);
                        let bad = format!("BLOB surebad {size}\n{value}");
                        let good = format!("BLOB sure{size} {size}\n{value}");
                        let said = format!("{each}{bad}GET k\n{good}SURE k sure t\n{bad}");
                        client.say_slowly(&said, pieces).unwrap();
                        if !each.is_empty() {
                            assert_eq!(hear(&mut client).unwrap(), "+");
                        }
                        assert_eq!(
                            hear(&mut client).unwrap(),
                            "? one takes no surebad blob",
                            "{route}"
                        );
                        assert_eq!(hear(&mut client).unwrap(), "= nothing", "{route}");
                        assert_eq!(hear(&mut client).unwrap(), "+", "{route}");
                        ran(&hear(&mut client).unwrap(), "k", "sure t");
                        assert_eq!(hear(&mut client).unwrap(), "? one takes no surebad blob");
                        let expected = format!("= {} of one", digest(value.as_bytes()));
                        assert_eq!(ask(&mut client, &format!("GET sure{size}")), expected, "{route}");
                    }
                }
            }
            assert!(proxy.metrics().open_lanes <= 4, "they are used again");
        });
    }
}

#[test]
fn a_client_that_leaves_while_its_request_waits_takes_nothing_with_it() {
    one("one", "p", |proxy| {
        let mut stays = Client::new(proxy.address);
        for each in ["", "EACH k\n"] {
            let mut leaves = Client::new(proxy.address);
            leaves
                .say(&format!("{each}SURE k sure a{}\n", each.len()))
                .unwrap();
            drop(leaves);
            let value = "x".repeat(300_000);
            let mut breaks_off = Client::new(proxy.address);
            breaks_off
                .say(&format!("{each}BLOB surely{} 400000\n{value}", each.len()))
                .unwrap();
            drop(breaks_off);
            assert_eq!(ask(&mut stays, "GET k"), "= nothing");
            ran(
                &ask(&mut stays, &format!("SURE k sure b{}", each.len())),
                "k",
                &format!("sure b{}", each.len()),
            );
        }
    });
}

/// Nothing of the request itself was sent: another server may have it.
#[test]
fn a_request_whose_lane_is_lost_meanwhile_was_not_sent() {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    let settings = "timeout: 300ms, eject: {failures: 0}";
    for (text, said) in [("sure lost", "Connection closed"), ("sure mute", "timeout")] {
        over("p", &servers, settings, &FITTING, |proxy| {
            for each in [false, true] {
                let mut client = Client::new(proxy.address);
                if each {
                    assert_eq!(ask(&mut client, "EACH k"), "+");
                }
                client.say(&format!("SURE k {text}\nPUT k v\n")).unwrap();
                let answer = hear(&mut client).unwrap();
                assert!(
                    answer.starts_with("? proxy: ") && answer.contains(said),
                    "{answer}"
                );
                let answer = hear(&mut client).unwrap();
                assert!(answer == "+" || answer.starts_with("? proxy: "), "{answer}");
                assert_eq!(ask(&mut client, "PUT k v"), "+");
            }
        });
    }
}

#[test]
fn a_request_that_was_not_sent_fails_over() {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    over("{failover: p}", &servers, PATIENT, &FITTING, |proxy| {
        let mut client = Client::new(proxy.address);
        let mut others = 0;
        for n in 0..20 {
            let said = ask(&mut client, &format!("SURE k{n} sure lost at one"));
            ran(&said, &format!("k{n}"), "sure lost at one");
            others += u64::from(proxy.metrics().members[0].lost > 0);
        }
        assert!(others > 0, "the first server has had none");
    });
}

/// What waits on a dedicated lane keeps it from every other client.
#[test]
fn a_lane_on_which_a_request_waits_is_not_free() {
    let settings = "timeout: 1m, eject: {failures: 0}, dedicated: {max: 2, wait: 30s}";
    over("p", &[|| server::start("one")], settings, &FITTING, |proxy| {
        let mut clients: Vec<Client> = (0..6).map(|_| Client::new(proxy.address)).collect();
        for client in &mut clients {
            assert_eq!(ask(client, "EACH k"), "+");
        }
        for round in 0..5 {
            for (number, client) in clients.iter_mut().enumerate() {
                client
                    .say(&format!(
                        "SURE k{number} sure {round} {number}\nSURE l{number} sure {round}\n"
                    ))
                    .unwrap();
            }
            proxy.has_read();
            for (number, client) in clients.iter_mut().enumerate() {
                ran(
                    &hear(client).unwrap(),
                    &format!("k{number}"),
                    &format!("sure {round} {number}"),
                );
                ran(
                    &hear(client).unwrap(),
                    &format!("l{number}"),
                    &format!("sure {round}"),
                );
            }
        }
        assert!(proxy.metrics().open_lanes <= 2);
    });
}

/// What is behind a request that is answered here belongs to the same client, and its lane is not free yet.
#[test]
fn a_lane_that_is_released_is_free_behind_the_last_request() {
    over("p", &[|| server::start("one")], PATIENT, &FITTING, |proxy| {
        let (mut ann, mut bob) = (Client::each(proxy.address), Client::each(proxy.address));
        ann.say("SURE k sure bad\nVAR k mine\n").unwrap();
        assert_eq!(hear(&mut ann).unwrap(), "? one takes no sure bad");
        assert_eq!(hear(&mut ann).unwrap(), "+");
        becomes("the lane is free", || proxy.owned_lanes() == 0);
        let said = ask(&mut bob, "TELLME k");
        assert!(said.starts_with("= nothing, "), "{said}");
    });
}

#[test]
fn what_is_behind_a_request_that_is_answered_here_is_not_lost() {
    over("p", &[|| server::start("one")], PATIENT, &FITTING, |proxy| {
        let mut ann = Client::each(proxy.address);
        ann.say("SURE k sure bad\nSPOIL k\n").unwrap();
        assert_eq!(hear(&mut ann).unwrap(), "? one takes no sure bad");
        assert_eq!(hear(&mut ann).unwrap(), "+");
        assert_eq!(ask(&mut ann, "GET k"), "= nothing");
    });
}

#[test]
fn what_needs_no_answer_frees_no_lane_on_which_more_is_written() {
    over("p", &[|| server::start("one")], PATIENT, &FITTING, |proxy| {
        let (mut ann, mut bob) = (Client::each(proxy.address), Client::each(proxy.address));
        ann.say("TELL k v\nVAR k mine\n").unwrap();
        assert_eq!(hear(&mut ann).unwrap(), "+");
        becomes("the lane is free", || proxy.owned_lanes() == 0);
        let said = ask(&mut bob, "TELLME k");
        assert!(said.starts_with("= nothing, "), "{said}");
    });
}

/// The value waits here, and the server has all that it was given.
#[test]
fn a_server_is_late_while_a_value_waits_for_its_answer() {
    let settings = "timeout: 300ms, eject: {failures: 0}";
    over("p", &[|| server::start("one")], settings, &FITTING, |proxy| {
        for is_own in [false, true] {
            let mut ann = match is_own {
                true => Client::each(proxy.address),
                false => Client::new(proxy.address),
            };
            let value = "x".repeat(400_000);
            ann.say(&format!("BLOB suremute 500000\n{value}")).unwrap();
            let said = hear(&mut ann).unwrap();
            assert!(said.ends_with("timeout"), "{said}");
        }
    });
}

#[test]
fn a_long_answer_to_what_goes_before_a_request_ends_no_dedicated_lane() {
    over("p", &[|| server::start("one")], PATIENT, &FITTING, |proxy| {
        let mut ann = Client::each(proxy.address);
        let said = ask(&mut ann, "RUN k long");
        assert!(said.starts_with("= long for k"), "{said}");
    });
}

/// The second client's first request waits for the first one's, whose connection is still made.
#[test]
fn what_comes_behind_a_command_that_waits_for_its_turn_stays_behind_it() {
    over(
        "p",
        &[|| server::start("slow first")],
        PATIENT,
        &FITTING,
        |proxy| {
            let (mut ann, mut bob) = (Client::each(proxy.address), Client::each(proxy.address));
            ann.say("WAIT k 1\n").unwrap();
            proxy.has_read();
            bob.say("WAIT k 1\n").unwrap();
            proxy.has_read();
            bob.say("GET k\n").unwrap();
            assert_eq!(hear(&mut bob).unwrap(), "+");
            assert_eq!(hear(&mut bob).unwrap(), "= nothing");
            assert_eq!(hear(&mut ann).unwrap(), "+");
        },
    );
}
