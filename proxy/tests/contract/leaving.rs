//! Clients that leave, in every way and at every time: whatever a client holds is given back.

use std::{thread, time::Duration};

use crate::{client::Client, conversation::over, dedicated::DEDICATED, lines::LINES, proxy::Proxy, server};

/// How a client leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Leaving {
    Closes,
    Resets,
    /// It sends no more, and waits for what it may get.
    HalfCloses,
}

const WAYS: [Leaving; 3] = [Leaving::Closes, Leaving::Resets, Leaving::HalfCloses];

/// When a client leaves.
#[derive(Clone, Copy, Debug)]
enum Moment {
    /// With its last request.
    With,
    /// While it holds what it holds.
    In,
    /// While requests wait behind that.
    Behind,
    /// While more wait behind it than is read at a time.
    FarBehind,
}

const MOMENTS: [Moment; 4] = [Moment::With, Moment::In, Moment::Behind, Moment::FarBehind];

/// What a client holds.
struct Hold {
    what: &'static str,
    /// What it has asked, and has been answered.
    before: &'static [&'static str],
    /// The request with which it holds it.
    request: &'static str,
    /// Bytes of a value, of which a half is sent.
    value: usize,
}

const NONE: Hold = Hold {
    what: "",
    before: &[],
    request: "",
    value: 0,
};

const HOLDS: [Hold; 12] = [
    Hold {
        what: "nothing",
        ..NONE
    },
    Hold {
        what: "a request under way",
        request: "GET k\n",
        ..NONE
    },
    Hold {
        what: "a connection to a server that lets it wait for ever",
        request: "WAIT k 0\n",
        ..NONE
    },
    Hold {
        what: "a connection to a server that lets it wait for a minute",
        request: "WAIT k 60000\n",
        ..NONE
    },
    Hold {
        what: "the beginning of a transaction",
        before: &["HOLD k\n"],
        ..NONE
    },
    Hold {
        what: "a wait within a transaction",
        before: &["HOLD k\n", "PUT k v\n"],
        request: "WAIT k 0\n",
        ..NONE
    },
    Hold {
        what: "a wait as another user",
        before: &["USE ann\n"],
        request: "WAIT k 0\n",
        ..NONE
    },
    Hold {
        what: "a subscription",
        before: &["WATCH k 1\n"],
        ..NONE
    },
    Hold {
        what: "half a value",
        request: "BLOB k 300000\n",
        value: 300_000,
        ..NONE
    },
    Hold {
        what: "half a value within a transaction",
        before: &["HOLD k\n"],
        request: "BLOB k 300000\n",
        value: 300_000,
    },
    Hold {
        what: "a large reply",
        request: "MANY k 20000\n",
        ..NONE
    },
    Hold {
        what: "replies that are joined",
        request: "SOME a b c d e f g h\n",
        ..NONE
    },
];

/// A client that has left, as far as it can be told from its end of the connection.
fn leave(proxy: &Proxy, hold: &Hold, way: Leaving, moment: Moment) -> Option<Client> {
    let mut client = Client::new(proxy.address);
    for line in hold.before {
        client.say(line).unwrap();
        while client.hear().unwrap() != "+" {}
    }
    let behind = match moment {
        _ if hold.value > 0 => "x".repeat(hold.value / 2),
        Moment::With | Moment::In => String::new(),
        Moment::Behind => "GET k\n".to_owned(),
        Moment::FarBehind => "GET k\n".repeat(4_000),
    };
    client.say(&format!("{}{behind}", hold.request)).unwrap();
    if !matches!(moment, Moment::With) {
        proxy.has_read();
    }
    match way {
        Leaving::Closes => drop(client),
        Leaving::Resets => client.reset(),
        Leaving::HalfCloses => {
            client.half_close();
            return Some(client);
        }
    }
    None
}

/// Waits until nobody holds anything.
fn comes_to_rest(proxy: &Proxy, why: &str) {
    let mut left = String::new();
    let rests = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        let metrics = proxy.metrics();
        let dedicated: u64 = metrics.members.iter().map(|member| member.dedicated).sum();
        let waiting: u64 = metrics.members.iter().map(|member| member.waiting).sum();
        left = format!(
            "{} clients, {dedicated} lanes of theirs, {} requests, {waiting} waits",
            metrics.open_clients, metrics.in_flight
        );
        metrics.open_clients == 0 && dedicated == 0 && metrics.in_flight == 0 && waiting == 0
    });
    assert!(rests, "{why}: {left}");
}

#[test]
fn a_client_that_leaves_in_any_way_gives_back_whatever_it_holds() {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    let settings = "timeout: 2s, eject: {failures: 0}";
    over("p", &servers, settings, &LINES, |proxy| {
        for hold in &HOLDS {
            for way in WAYS {
                let left: Vec<Client> = MOMENTS
                    .iter()
                    .filter_map(|&moment| leave(proxy, hold, way, moment))
                    .collect();
                for mut client in left {
                    // What is due still comes. Then the proxy closes the connection.
                    while client.hear().is_ok() {}
                }
                comes_to_rest(proxy, &format!("{}, {way:?}", hold.what));
            }
        }
    });
}

/// Clients in the queue for a lane leave it, and get none.
#[test]
fn a_client_that_leaves_while_it_waits_for_a_lane_gives_its_place_back() {
    let settings = "timeout: 2s, eject: {failures: 0}";
    over("p", &[|| server::start("one")], settings, &LINES, |proxy| {
        for way in WAYS {
            let mut holders: Vec<Client> = (0..DEDICATED).map(|_| Client::new(proxy.address)).collect();
            for holder in &mut holders {
                holder.say("HOLD k\n").unwrap();
                while holder.hear().unwrap() != "+" {}
            }
            for request in ["HOLD k\n", "WAIT k 0\n"] {
                let hold = Hold { request, ..NONE };
                let left: Vec<Client> = MOMENTS
                    .iter()
                    .filter_map(|&moment| leave(proxy, &hold, way, moment))
                    .collect();
                for mut client in left {
                    while client.hear().is_ok() {}
                }
            }
            drop(holders);
            comes_to_rest(proxy, &format!("{way:?}"));
        }
    });
}

/// As behind a pipe: `printf … | nc`.
#[test]
fn a_client_that_closes_its_side_gets_every_reply_that_is_due() {
    let settings = "timeout: 2s, eject: {failures: 0}";
    over("p", &[|| server::start("one")], settings, &LINES, |proxy| {
        let mut client = Client::new(proxy.address);
        client
            // Two lanes serve them, so that what is done on one must not show on the other.
            .say("PUT k v\nGET k\nHOLD l\nPUT l w\nGET l\nFREE l\nWAIT l 1\n")
            .unwrap();
        client.half_close();
        let mut heard = Vec::new();
        while let Ok(line) = client.hear() {
            if !line.starts_with('!') {
                heard.push(line);
            }
        }
        assert_eq!(heard, ["+", "= v of one", "+", "+", "= w of one", "+", "+"]);
        comes_to_rest(proxy, "it has been served");
    });
}
