//! Dedicated lanes: connections to servers that belong to one client alone.

use std::{
    io, thread,
    time::{Duration, Instant},
};

use proxima::config::schema::Dedicated;

use crate::{
    client::Client,
    conversation::{each, over},
    lines::LINES,
    proxy::{PATIENT, Proxy},
    server::{self, digest},
};

/// Dedicated lanes of a worker to a member.
pub(crate) const DEDICATED: usize = Dedicated::DEFAULT.max as usize;

/// Runs a test over one server, so that clients that share a connection share this one.
fn one(route: &str, test: impl Fn(&Proxy)) {
    let settings = "timeout: 1s, eject: {failures: 0}";
    over(route, &[|| server::start("one")], settings, &LINES, test);
}

/// The next line, without the pushes that its server sends to all.
pub(crate) fn hear(client: &mut Client) -> io::Result<String> {
    loop {
        let line = client.hear()?;
        if !(line.starts_with('!') && line.contains("news")) {
            return Ok(line);
        }
    }
}

pub(crate) fn ask(client: &mut Client, line: &str) -> io::Result<String> {
    client.say(&format!("{line}\n"))?;
    hear(client)
}

fn who(client: &mut Client) -> String {
    let connection = ask(client, "WHO k").unwrap();
    assert!(connection.starts_with("= connection "), "{connection}");
    connection
}

fn lanes_become(proxy: &Proxy, count: u64) {
    let become_so = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        proxy.metrics().open_lanes == count
    });
    assert!(become_so, "{} lanes, not {count}", proxy.metrics().open_lanes);
}

/// Waits until so many dedicated lanes are free for the next client.
fn idle_become(proxy: &Proxy, count: u64) {
    let idle = || {
        proxy
            .metrics()
            .members
            .iter()
            .map(|member| member.dedicated_idle)
            .sum::<u64>()
    };
    let become_so = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        idle() == count
    });
    assert!(become_so, "{} idle lanes, not {count}", idle());
}

#[test]
fn a_held_lane_serves_no_other_client_until_it_is_released() {
    for route in ["p", "{failover: p}", "{log: p}"] {
        one(route, |proxy| {
            let [mut ann, mut bob, mut cid] = [(); 3].map(|()| Client::new(proxy.address));
            let shared = who(&mut ann);
            assert_eq!(who(&mut bob), shared, "{route}");
            // Everything is sent at once, with requests before and behind.
            ann.say("WHO k\nHOLD k\nWHO k\nPUT k v\nGET k\nWHO k\n").unwrap();
            assert_eq!(hear(&mut ann).unwrap(), shared);
            assert_eq!(hear(&mut ann).unwrap(), "+");
            let own = hear(&mut ann).unwrap();
            assert_ne!(own, shared, "{route}");
            assert_eq!(hear(&mut ann).unwrap(), "+");
            assert!(hear(&mut ann).unwrap().starts_with("= v of "));
            assert_eq!(hear(&mut ann).unwrap(), own);
            assert_eq!(ask(&mut bob, "HOLD k").unwrap(), "+");
            let bobs = who(&mut bob);
            assert!(bobs != own && bobs != shared && who(&mut cid) == shared);
            ann.say("FREE k\nWHO k\n").unwrap();
            assert_eq!(hear(&mut ann).unwrap(), "+");
            assert_eq!(
                hear(&mut ann).unwrap(),
                own,
                "what was said before the answer was said on it"
            );
            assert_eq!(who(&mut ann), shared);
            // The lane is clean, and goes to the next client.
            assert_eq!(ask(&mut cid, "HOLD k").unwrap(), "+");
            assert_eq!(who(&mut cid), own, "{route}");
            assert_eq!(proxy.metrics().open_lanes, 3);
        });
    }
}

/// The value is larger than what a shared lane takes, so it is passed on as it comes.
#[test]
fn a_streamed_request_goes_on_the_held_lane_of_its_client() {
    for route in ["p", "{failover: p}", "{log: p}"] {
        over(route, &[|| server::start("one")], PATIENT, &LINES, |proxy| {
            let (mut ann, mut bob) = (Client::new(proxy.address), Client::new(proxy.address));
            let value = "0123456789".repeat(50_000);
            assert_eq!(ask(&mut ann, "HOLD k").unwrap(), "+");
            let own = who(&mut ann);
            let blob = format!("BLOB k {}\n{value}", value.len());
            ann.say_slowly(&format!("WHO k\n{blob}GET k\nWHO k\n"), 9)
                .unwrap();
            assert_eq!(hear(&mut ann).unwrap(), own, "{route}");
            assert_eq!(hear(&mut ann).unwrap(), "+", "{route}");
            let expected = format!("= {} of one", digest(value.as_bytes()));
            assert_eq!(hear(&mut ann).unwrap(), expected, "{route}");
            assert_eq!(hear(&mut ann).unwrap(), own, "{route}");
            assert_ne!(who(&mut bob), own);
            // No bulk lane was opened for it: there are the held one and the shared one.
            assert_eq!(proxy.metrics().open_lanes, 2, "{route}");
            // The lane of a client that leaves within a value ends at once.
            let begin = &blob[..blob.len() / 2];
            ann.say(begin).unwrap();
            drop(ann);
            lanes_become(proxy, 1);
            assert_eq!(ask(&mut bob, "GET k").unwrap(), expected, "{route}");
        });
    }
}

/// The server could not answer before it had the whole value.
#[test]
fn a_value_that_comes_for_longer_than_the_time_out_is_stored_on_a_held_lane() {
    let settings = "timeout: 2s, eject: {failures: 0}";
    over("p", &[|| server::start("one")], settings, &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let value = "0123456789".repeat(20_000);
        client.say(&format!("HOLD k\nBLOB k {}\n", value.len())).unwrap();
        for part in value.as_bytes().chunks(value.len() / 5) {
            thread::sleep(Duration::from_millis(600));
            client.say(str::from_utf8(part).unwrap()).unwrap();
        }
        assert_eq!(hear(&mut client).unwrap(), "+");
        assert_eq!(hear(&mut client).unwrap(), "+");
        let expected = format!("= {} of one", digest(value.as_bytes()));
        assert_eq!(ask(&mut client, "GET k").unwrap(), expected);
    });
}

#[test]
fn a_spoilt_lane_is_closed() {
    one("p", |proxy| {
        let (mut ann, mut bob) = (Client::new(proxy.address), Client::new(proxy.address));
        assert_eq!(ask(&mut ann, "HOLD k").unwrap(), "+");
        let own = who(&mut ann);
        ann.say("SPOIL k\n").unwrap();
        assert_eq!(hear(&mut ann).unwrap(), "+");
        lanes_become(proxy, 0);
        assert_eq!(ask(&mut bob, "HOLD k").unwrap(), "+");
        assert_ne!(who(&mut bob), own);
    });
}

/// The client's transaction ends with it, and so do its requests under way.
#[test]
fn a_client_that_leaves_ends_what_its_server_does_at_once() {
    one("p", |proxy| {
        for rest in ["WAIT k 0\n", "WAIT k 0\nWAIT k 0\n"] {
            let mut ann = Client::new(proxy.address);
            ann.say(&format!("HOLD k\n{rest}")).unwrap();
            assert_eq!(hear(&mut ann).unwrap(), "+");
            lanes_become(proxy, 1);
            drop(ann);
            lanes_become(proxy, 0);
        }
    });
}

#[test]
fn the_lane_of_a_client_that_leaves_is_reset_for_the_next_one() {
    one("p", |proxy| {
        for _ in 0..5 {
            let mut ann = Client::new(proxy.address);
            assert_eq!(ask(&mut ann, "HOLD k").unwrap(), "+");
            assert_eq!(ask(&mut ann, "VAR k mine").unwrap(), "+");
            let own = ask(&mut ann, "TELLME k").unwrap();
            let own = own.strip_prefix("= mine, ").unwrap().to_owned();
            drop(ann);
            idle_become(proxy, 1);
            let mut bob = Client::new(proxy.address);
            assert_eq!(ask(&mut bob, "HOLD k").unwrap(), "+");
            assert_eq!(ask(&mut bob, "TELLME k").unwrap(), format!("= nothing, {own}"));
            drop(bob);
            idle_become(proxy, 1);
        }
    });
}

/// A server that is silent for longer than the pool's time-out is not late for a client that has asked it to
/// wait.
#[test]
fn a_long_wait_on_a_dedicated_lane_delays_no_other_client() {
    one("p", |proxy| {
        let [mut ann, mut bob, mut cid] = [(); 3].map(|()| Client::new(proxy.address));
        ann.say("WAIT k 2500\nGET k\n").unwrap();
        bob.say("WAIT k 0\n").unwrap();
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(2000) {
            assert_eq!(ask(&mut cid, "GET other").unwrap(), "= nothing");
            thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(hear(&mut ann).unwrap(), "+");
        assert_eq!(hear(&mut ann).unwrap(), "= nothing");
        let members = proxy.metrics().members;
        assert_eq!(members.iter().map(|member| member.failures).sum::<u64>(), 0);
        // This client allows less time than its server takes.
        cid.say("WAIT k 3000\n").unwrap();
        let early = Client::new(proxy.address).ask("GET k").unwrap();
        assert!(early.starts_with('='), "{early}");
    });
}

#[test]
fn dedicated_lanes_are_given_in_order_of_waiting_and_within_the_time_out() {
    one("p", |proxy| {
        let mut holders: Vec<Client> = (0..DEDICATED).map(|_| Client::new(proxy.address)).collect();
        for client in &mut holders {
            assert_eq!(ask(client, "HOLD k").unwrap(), "+");
        }
        let [mut first, mut second, mut gone, mut late] = [(); 4].map(|()| Client::new(proxy.address));
        for client in [&mut first, &mut gone, &mut second] {
            client.say("HOLD k\nWHO k\n").unwrap();
            proxy.has_read();
        }
        drop(gone);
        let owns: Vec<String> = holders[..2].iter_mut().map(who).collect();
        for holder in &mut holders[..2] {
            assert_eq!(ask(holder, "FREE k").unwrap(), "+");
        }
        assert_eq!(hear(&mut first).unwrap(), "+");
        assert!(owns.contains(&hear(&mut first).unwrap()));
        // The client that has gone may have had the other lane for a moment. It was then closed, and this is
        // a new one.
        assert_eq!(hear(&mut second).unwrap(), "+");
        assert!(hear(&mut second).unwrap().starts_with("= connection "));
        late.say("HOLD k\nWHO k\n").unwrap();
        let answer = hear(&mut late).unwrap();
        assert!(
            answer.ends_with("connections that clients may have for themselves (dedicated.max) are in use"),
            "{answer}"
        );
        assert!(late.is_closed(), "nobody knows what its server would have kept");
        // Shared lanes are still free.
        assert!(
            ask(&mut Client::new(proxy.address), "GET k")
                .unwrap()
                .starts_with('=')
        );
        // A lane that breaks makes room as well.
        late = Client::new(proxy.address);
        late.say("HOLD k\nWHO k\n").unwrap();
        proxy.has_read();
        drop(holders.pop());
        assert_eq!(hear(&mut late).unwrap(), "+");
        assert!(hear(&mut late).unwrap().starts_with("= connection "));
    });
}

#[test]
fn requests_of_a_held_lane_stay_on_one_server() {
    each("p", &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        let server = |client: &mut Client, key: &str| {
            let connection = ask(client, &format!("WHO {key}")).unwrap();
            connection.rsplit(' ').next().unwrap_or_default().to_owned()
        };
        let here = server(&mut client, "k");
        let elsewhere = (0..100).map(|number| format!("k{number}"));
        let other = elsewhere
            .into_iter()
            .find(|key| server(&mut client, key) != here)
            .unwrap();
        assert_eq!(ask(&mut client, "HOLD k").unwrap(), "+");
        let answer = ask(&mut client, &format!("PUT {other} v")).unwrap();
        assert_eq!(
            answer,
            "? proxy: what belongs together is on several servers, or of several logins"
        );
        assert!(client.is_closed());
    });
    for route in ["{all_sync: p}", "{all_async: p}", "{all_initial: p}"] {
        each(route, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            let answer = ask(&mut client, "HOLD k").unwrap();
            let why = ": what belongs to one connection cannot go to several servers: ";
            assert!(
                answer.starts_with("? proxy: HOLD is not served below all_") && answer.contains(why),
                "{answer}"
            );
            assert!(client.is_closed());
        });
    }
}

#[test]
fn a_lost_dedicated_lane_closes_its_client() {
    one("p", |proxy| {
        let mut client = Client::new(proxy.address);
        assert_eq!(ask(&mut client, "HOLD k").unwrap(), "+");
        client.say("MANY broken 1\nGET k\n").unwrap();
        while let Ok(line) = hear(&mut client) {
            assert!(!line.starts_with('='), "{line}");
        }
        lanes_become(proxy, 0);
    });
}

/// The request is not sent elsewhere either, where no transaction was begun.
#[test]
fn a_request_on_a_dedicated_lane_never_fails_over() {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    let settings = "timeout: 1s, eject: {failures: 0}";
    for route in ["{failover: p}", "{miss_failover: p}"] {
        over(route, &servers, settings, &LINES, |proxy| {
            let mut client = Client::new(proxy.address);
            assert_eq!(ask(&mut client, "HOLD k").unwrap(), "+");
            assert_eq!(ask(&mut client, "GET nothing").unwrap(), "= nothing", "{route}");
            assert!(
                ask(&mut client, "GET failed").unwrap().ends_with(" has failed"),
                "{route}"
            );
            client.say("MANY broken 1\n").unwrap();
            while let Ok(line) = hear(&mut client) {
                assert!(line.starts_with(['-', '?']), "{route}: {line}");
            }
        });
    }
}

#[test]
fn a_request_for_another_login_on_a_held_lane_is_refused() {
    one("p", |proxy| {
        let mut client = Client::new(proxy.address);
        client.say("USE ann\nHOLD k\nUSE bob\nWHOAMI k\n").unwrap();
        for _ in 0..3 {
            assert_eq!(hear(&mut client).unwrap(), "+");
        }
        let answer = hear(&mut client).unwrap();
        assert!(
            answer.ends_with("on several servers, or of several logins"),
            "{answer}"
        );
        assert!(client.is_closed());
    });
}

/// The server sends the pushes before the answer for which the client waits.
#[test]
fn pushes_do_not_wait_for_replies() {
    one("p", |proxy| {
        let (mut ann, mut bob) = (Client::new(proxy.address), Client::new(proxy.address));
        assert_eq!(ask(&mut ann, "WATCH k 1").unwrap(), "+");
        ann.say("WAIT k 0\n").unwrap();
        assert_eq!(ask(&mut bob, "PUT k v").unwrap(), "+");
        assert_eq!(hear(&mut ann).unwrap(), "! k v");
    });
}

#[test]
fn clients_that_come_and_go_reuse_a_few_dedicated_lanes() {
    one("p", |proxy| {
        for _ in 0..2 * DEDICATED {
            let mut client = Client::new(proxy.address);
            client.say("HOLD k\nFREE k\nGET k\n").unwrap();
            for expected in ["+", "+", "="] {
                assert!(hear(&mut client).unwrap().starts_with(expected));
            }
        }
        assert!(proxy.metrics().open_lanes <= 2);
    });
}

#[test]
fn pushes_reach_their_subscriber_and_no_other_client() {
    one("p", |proxy| {
        let [mut ann, mut bob, mut cid] = [(); 3].map(|()| Client::new(proxy.address));
        assert_eq!(ask(&mut ann, "WATCH k 2000").unwrap(), "+");
        assert_eq!(ask(&mut bob, "WATCH l 1").unwrap(), "+");
        for number in 0..2000 {
            assert_eq!(ask(&mut cid, &format!("PUT k v{number}")).unwrap(), "+");
            assert_eq!(hear(&mut ann).unwrap(), format!("! k v{number}"));
        }
        assert_eq!(ask(&mut cid, "PUT l v").unwrap(), "+");
        assert_eq!(hear(&mut bob).unwrap(), "! l v");
        // Behind the pushes, replies are read as replies.
        bob.say("GET l\nFREE l\nGET l\n").unwrap();
        for expected in ["= v of one", "+", "= v of one"] {
            assert_eq!(hear(&mut bob).unwrap(), expected);
        }
    });
}
