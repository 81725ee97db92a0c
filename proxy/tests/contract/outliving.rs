//! A client whose dedicated lane has ended goes on if the proxy knows all that it relies on, and is closed if
//! only the server knew that.

use std::{sync::mpsc, time::Duration};

use proxima::{
    protocol::Protocols,
    upstream::{Close, Closed},
    worker::Order,
};

use crate::{
    client::Client,
    conversation::over,
    dedicated::{self, hear},
    lines::Lines,
    proxy::{PATIENT, Proxy, becomes},
    server::{self, PASSWORD},
};

static KNOWN: Lines = Lines::fitting(PASSWORD);
static FITTING: Protocols = Protocols::new(&[&KNOWN]);

fn one(settings: &str, test: impl Fn(&Proxy)) {
    over("p", &[|| server::start("one")], settings, &FITTING, test);
}

fn ask(client: &mut Client, line: &str) -> String {
    dedicated::ask(client, line).unwrap()
}

/// A client whose connections have to know this, on a dedicated lane. Returns the lane.
fn keeping(proxy: &Proxy, value: &str) -> (Client, String) {
    let mut client = Client::new(proxy.address);
    assert_eq!(ask(&mut client, "EACH k"), "+");
    assert_eq!(ask(&mut client, &format!("KEEP k {value}")), "+");
    let lane = told(&mut client, value);
    (client, lane)
}

/// The connection that knows this value.
fn told(client: &mut Client, value: &str) -> String {
    let said = ask(client, "TELLME k");
    let lane = said.strip_prefix(&format!("= {value}, "));
    lane.unwrap_or_else(|| panic!("{said}, not {value}")).to_owned()
}

/// Ends each connection on which nothing is under way.
fn close(proxy: &Proxy, when: Close) {
    let (done, told) = mpsc::channel();
    let member = proxy.members[0].id;
    proxy.order(Order::Close {
        closed: Closed::Member(member),
        when,
        done,
    });
    told.recv_timeout(Duration::from_secs(10)).unwrap();
}

#[test]
fn what_the_proxy_knows_is_told_to_the_next_lane() {
    one(PATIENT, |proxy| {
        let (mut ann, first) = keeping(proxy, "mine");
        let (mut bob, _) = keeping(proxy, "yours");
        for when in [Close::AfterReply, Close::Now] {
            close(proxy, when);
            let next = told(&mut ann, "mine");
            assert_ne!(next, first);
            assert_eq!(told(&mut ann, "mine"), next, "it stays");
            told(&mut bob, "yours");
        }
        // What is set on the next lane is what the one after it is told.
        assert_eq!(ask(&mut ann, "KEEP k other"), "+");
        close(proxy, Close::AfterReply);
        told(&mut ann, "other");
    });
}

#[test]
fn what_waits_on_the_lane_gets_an_error_and_the_client_goes_on() {
    let hasty = "timeout: 300ms, eject: {failures: 0}";
    for (settings, text, said) in [(PATIENT, "lost", "Connection closed"), (hasty, "mute", "timeout")] {
        one(settings, |proxy| {
            let (mut ann, first) = keeping(proxy, "mine");
            ann.say(&format!("RUN k {text}\nTELLME k\n")).unwrap();
            let failed = hear(&mut ann).unwrap();
            assert!(
                failed.starts_with("? proxy: ") && failed.contains(said),
                "{failed}"
            );
            // This one was on the lane as well, or came when that had ended.
            let behind = hear(&mut ann).unwrap();
            assert!(
                behind.contains(said) || behind.starts_with("= mine, "),
                "{behind}"
            );
            assert_ne!(told(&mut ann, "mine"), first);
        });
    }
}

/// Only a closed connection tells the client that it has no more of its reply.
#[test]
fn a_client_that_has_a_part_of_a_reply_is_closed() {
    one(PATIENT, |proxy| {
        let (mut ann, _) = keeping(proxy, "mine");
        ann.say("MANY broken 1\nTELLME k\n").unwrap();
        while hear(&mut ann).is_ok_and(|line| line.starts_with('-')) {}
        assert!(ann.is_closed());
    });
}

/// The server closes the connection when nothing is asked: the client notices nothing.
#[test]
fn a_lane_that_ends_idle_is_replaced_in_silence() {
    one(PATIENT, |proxy| {
        let (mut ann, first) = keeping(proxy, "mine");
        let lanes = proxy.metrics().open_lanes;
        assert!(ask(&mut ann, "RUN k leaves").starts_with("= leaves for k: "));
        becomes("the lane has ended", || proxy.metrics().open_lanes < lanes);
        assert_ne!(told(&mut ann, "mine"), first);
    });
}

#[test]
fn a_client_that_relies_on_more_is_closed() {
    for more in ["VAR k other", "HOLD k"] {
        one(PATIENT, |proxy| {
            let (mut ann, _) = keeping(proxy, "mine");
            let (mut bob, _) = keeping(proxy, "yours");
            assert_eq!(ask(&mut ann, more), "+");
            close(proxy, Close::AfterReply);
            assert!(ann.is_closed(), "{more}");
            told(&mut bob, "yours");
        });
    }
}

/// The lane there would be nobody's, with what the server keeps.
#[test]
fn what_waited_on_a_lane_that_its_client_outlives_is_asked_nowhere_else() {
    let servers = ["rude once", "two"].map(|name| move || server::start(name));
    over("{failover: p}", &servers, PATIENT, &FITTING, |proxy| {
        let mut ann = Client::each(proxy.address);
        let said = ask(&mut ann, "KEEP k mine");
        proxy.reload("route: {failover: p}", "route: p");
        let mut bob = Client::each(proxy.address);
        for n in 0..8 {
            let said = ask(&mut bob, &format!("TELLME k{n}"));
            assert!(said.starts_with("= nothing, "), "{said}");
        }
        assert!(said.starts_with("? proxy: "), "{said}");
        assert!(ask(&mut ann, "TELLME k").starts_with("= mine, "));
    });
}
