//! Requests that the codec writes for one lane, and what it knows of the lane when a reply comes.

use proxima::protocol::Protocols;

use crate::{
    client::Client,
    conversation::over,
    lines::Lines,
    proxy::{PATIENT, Proxy},
    server::{self, PASSWORD, digest},
};

static KNOWN: Lines = Lines::fitting(PASSWORD);
static FITTING: Protocols = Protocols::new(&[&KNOWN]);

/// Routes that pass a request on as it is, by a walk of their own, through a flight or to several.
pub(crate) const ROUTES: [&str; 7] = [
    "p",
    "{failover: p}",
    "{log: p}",
    "{all_sync: p}",
    "{all_fastest: p}",
    "{latest: p}",
    "{miss_failover: p}",
];

pub(crate) fn one(name: &'static str, route: &str, test: impl Fn(&Proxy)) {
    over(route, &[move || server::start(name)], PATIENT, &FITTING, test);
}

/// What came of a text: the text's number, how many there are on its connection, and the connection.
fn run(client: &mut Client, key: &str, text: &str) -> (usize, usize, String) {
    let said = client.ask(&format!("RUN {key} {text}")).unwrap();
    ran(&said, key, text)
}

pub(crate) fn ran(said: &str, key: &str, text: &str) -> (usize, usize, String) {
    let rest = said
        .strip_prefix(&format!("= {text} for {key}: text "))
        .unwrap_or_else(|| panic!("{said}"));
    let (numbers, connection) = rest.split_once(", ").unwrap();
    let (number, all) = numbers.split_once(" of ").unwrap();
    (
        number.parse().unwrap(),
        all.parse().unwrap(),
        connection.to_owned(),
    )
}

#[test]
fn a_reply_is_read_as_its_connection_has_agreed_and_ends_as_its_client_expects() {
    for route in ROUTES {
        for name in ["terse", "one"] {
            one(name, route, |proxy| {
                let mut client = Client::new(proxy.address);
                for count in [0, 1, 10, 3000] {
                    client.say(&format!("MANY k {count}\n")).unwrap();
                    let lines = client.hear_many().unwrap();
                    assert_eq!(
                        (lines.len(), &*lines[count]),
                        (count + 1, &*format!(". {count}")),
                        "{route}"
                    );
                }
            });
        }
    }
}

#[test]
fn the_end_of_a_reply_knows_the_session_that_it_is_for() {
    for route in ROUTES {
        one("one", route, |proxy| {
            let (mut ann, mut bob) = (Client::new(proxy.address), Client::new(proxy.address));
            assert_eq!(ann.ask("AS ann").unwrap(), "+");
            assert_eq!(ann.ask("WHO k").unwrap(), "= somebody for you", "{route}");
            assert!(bob.ask("WHO k").unwrap().starts_with("= connection "), "{route}");
        });
    }
}

#[test]
fn a_text_is_made_known_once_on_each_connection() {
    for route in ROUTES {
        one("one", route, |proxy| {
            let [mut ann, mut bob] = [(); 2].map(|()| Client::new(proxy.address));
            let (first, all, connection) = run(&mut ann, "k", "select a");
            assert_eq!((first, all), (0, 1), "{route}");
            for _ in 0..3 {
                assert_eq!(
                    run(&mut bob, "l", "select a"),
                    (0, 1, connection.clone()),
                    "{route}"
                );
            }
            assert_eq!(run(&mut bob, "l", "select b"), (1, 2, connection.clone()));
            assert_eq!(run(&mut ann, "l", "select a"), (0, 2, connection));
        });
    }
}

#[test]
fn what_is_asked_before_the_login_is_over_is_written_behind_it() {
    for route in ROUTES {
        for name in ["one", "flaky"] {
            one(name, route, |proxy| {
                let mut clients: Vec<Client> = (0..5).map(|_| Client::new(proxy.address)).collect();
                let asked: String = (0..20)
                    .map(|n| format!("RUN k{n} t{}\nPUT k v\n", n % 3))
                    .collect();
                for client in &mut clients {
                    client.say(&asked).unwrap();
                }
                for client in &mut clients {
                    for n in 0..20 {
                        let (_, all, _) =
                            ran(&client.hear().unwrap(), &format!("k{n}"), &format!("t{}", n % 3));
                        assert!(all <= 3, "{route}: each is told once");
                        assert_eq!(client.hear().unwrap(), "+");
                    }
                }
            });
        }
    }
}

/// The client hears what the server has said of the text, and not that there is no such text.
#[test]
fn what_failed_before_a_request_is_its_answer_and_is_tried_again() {
    one("one", "p", |proxy| {
        let mut client = Client::new(proxy.address);
        for _ in 0..2 {
            client.say("RUN k bad text\nRUN k good\n").unwrap();
            assert_eq!(client.hear().unwrap(), "? one takes no bad text");
            ran(&client.hear().unwrap(), "k", "good");
        }
    });
}

#[test]
fn a_large_value_goes_behind_its_head_even_within_the_login() {
    for route in ROUTES {
        one("one", route, |proxy| {
            let value = "0123456789".repeat(50_000);
            for pieces in [1, 9] {
                let mut client = Client::new(proxy.address);
                let blob = format!("BLOB k {}\n{value}RUN k t\n", value.len());
                client.say_slowly(&blob, pieces).unwrap();
                assert_eq!(client.hear().unwrap(), "+", "{route}");
                ran(&client.hear().unwrap(), "k", "t");
                let expected = format!("= {} of one", digest(value.as_bytes()));
                assert_eq!(client.ask("GET k").unwrap(), expected, "{route}");
            }
        });
    }
}

#[test]
fn a_part_of_any_size_passes_with_what_was_noted_before_it() {
    for route in ROUTES {
        for name in ["one", "terse"] {
            one(name, route, |proxy| {
                let mut client = Client::new(proxy.address);
                for size in [0, 10, 70_000, 1_000_000] {
                    client.say(&format!("MANY large {size}\nWHO k\n")).unwrap();
                    assert_eq!(client.hear().unwrap(), "- first");
                    assert_eq!(client.hear().unwrap(), format!("& {size}"));
                    let part = client.hear_bytes(size).unwrap();
                    assert!(part.iter().all(|&byte| byte == b'x'), "{route}, {size} bytes");
                    assert_eq!(client.hear().unwrap(), "& 3");
                    assert_eq!(client.hear_bytes(3).unwrap(), b"abc");
                    assert_eq!(client.hear().unwrap(), ". 3");
                    assert!(client.hear().unwrap().starts_with("= connection "));
                }
            });
        }
    }
}
