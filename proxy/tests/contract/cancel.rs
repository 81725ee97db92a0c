//! A client has ended what a server does for another one, whichever worker that is at.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{
    client::Client,
    conversation::over,
    dedicated::ask,
    lines::LINES,
    proxy::{PATIENT, Proxy, Served, back_ends, becomes},
    server,
};

fn one(name: &'static str, test: impl Fn(&Proxy)) {
    let settings = "timeout: 1m, eject: {failures: 0}";
    over("p", &[move || server::start(name)], settings, &LINES, test);
}

#[test]
fn what_a_server_does_for_another_client_ends_and_nothing_else() {
    one("stoppable", |proxy| {
        let [mut ann, mut bob, mut eve] = [(); 3].map(|()| Client::new(proxy.address));
        let number = ask(&mut ann, "ID k").unwrap();
        let number = number.strip_prefix("= ").unwrap();
        assert_eq!(
            ask(&mut eve, &format!("CANCEL {number}")).unwrap(),
            "+",
            "there is nothing to end"
        );
        let begun = Instant::now();
        ann.say("WAIT k 60000\n").unwrap();
        becomes("the server waits", || busy(proxy).waits == 1);
        bob.say("WAIT k 500\n").unwrap();
        proxy.has_read();
        assert_eq!(ask(&mut eve, &format!("CANCEL {number}")).unwrap(), "+");
        assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "? stopped");
        assert!(begun.elapsed() < Duration::from_secs(30));
        assert_eq!(
            crate::dedicated::hear(&mut bob).unwrap(),
            "+",
            "nobody has stopped it"
        );
        // The client goes on, and so does its connection.
        assert_eq!(ask(&mut ann, "WAIT k 1").unwrap(), "+");
    });
}

#[test]
fn a_cancel_that_leads_nowhere_is_answered() {
    one("stoppable", |proxy| {
        let mut eve = Client::new(proxy.address);
        for number in ["0", "12345678901234567890", "none"] {
            assert_eq!(
                ask(&mut eve, &format!("CANCEL {number}")).unwrap(),
                "? nothing to cancel"
            );
        }
    });
    // This server knows no connection by its number, and says so.
    one("one", |proxy| {
        let (mut ann, mut eve) = (Client::new(proxy.address), Client::new(proxy.address));
        let number = ask(&mut ann, "ID k").unwrap().replace("= ", "");
        ann.say("WAIT k 300\n").unwrap();
        proxy.has_read();
        while ask(&mut eve, &format!("CANCEL {number}")).unwrap() != "+" {
            ann.say("WAIT k 300\n").unwrap();
        }
        assert_eq!(ask(&mut eve, "GET k").unwrap(), "= nothing");
    });
}

fn stoppable(settings: &str, test: impl Fn(&Proxy)) {
    over("p", &[|| server::start("stoppable")], settings, &LINES, test);
}

fn busy(proxy: &Proxy) -> server::Busy {
    server::busy(proxy.members[0].address.parse().unwrap())
}

/// A client of this user of the server, with its number.
fn client_of(proxy: &Proxy, user: &str) -> (Client, String) {
    let mut client = Client::new(proxy.address);
    let number = ask(&mut client, "ID k").unwrap().replace("= ", "");
    assert_eq!(ask(&mut client, &format!("USE {user}")).unwrap(), "+");
    (client, number)
}

#[test]
fn what_is_ended_is_ends_as_its_own_user_and_by_nobody_else() {
    stoppable("timeout: 1m, eject: {failures: 0}", |proxy| {
        let (mut ann, number) = client_of(proxy, "ann");
        let (mut again, _) = client_of(proxy, "ann");
        let (mut bob, _) = client_of(proxy, "bob");
        ann.say("WAIT k 60000\n").unwrap();
        becomes("the server waits", || busy(proxy).waits == 1);
        for _ in 0..3 {
            assert_eq!(
                ask(&mut bob, &format!("CANCEL {number}")).unwrap(),
                "? nothing to cancel"
            );
        }
        assert_eq!(busy(proxy).waits, 1);
        // The server lets only the same user end it.
        assert_eq!(ask(&mut again, &format!("CANCEL {number}")).unwrap(), "+");
        assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "? stopped");
        assert_eq!(
            ask(&mut ann, "WHOAMI k").unwrap().split(',').next(),
            Some("= ann")
        );
    });
}

#[test]
fn what_a_client_leaves_behind_is_ended() {
    for user in ["", "ann"] {
        stoppable("timeout: 1m, eject: {failures: 0}", |proxy| {
            let mut clients: Vec<Client> = (0..4).map(|_| client_of(proxy, user).0).collect();
            for client in &mut clients {
                client.say("WAIT k 60000\nWAIT k 60000\n").unwrap();
            }
            becomes("the server waits", || busy(proxy).waits == 4);
            let stays = clients.pop();
            for (number, client) in clients.into_iter().enumerate() {
                match number {
                    0 => client.reset(),
                    _ => drop(client),
                }
            }
            becomes("what nobody waits for has ended", || busy(proxy).waits == 1);
            drop(stays);
            becomes("nothing is left", || busy(proxy).waits == 0);
        });
    }
}

/// A server that is late goes on as well.
#[test]
fn what_was_late_is_ended() {
    stoppable("timeout: 300ms, eject: {failures: 0}", |proxy| {
        let (mut ann, _) = client_of(proxy, "ann");
        // The request does not say that it takes long.
        assert_eq!(ask(&mut ann, "EACH k").unwrap(), "+");
        ann.say("GET slow\n").unwrap();
        let answer = crate::dedicated::hear(&mut ann).unwrap();
        assert!(answer.ends_with("timeout"), "{answer}");
        becomes("it has ended", || busy(proxy).waits == 0);
    });
}

/// Every connection that clients may have is in use.
#[test]
fn one_connection_is_kept_aside() {
    let settings = "timeout: 1m, eject: {failures: 0}, dedicated: {total: 6, wait: 100ms}";
    stoppable(settings, |proxy| {
        let mut clients: Vec<(Client, String)> = (0..6)
            .map(|n| client_of(proxy, ["ann", "bob", "cid"][n % 3]))
            .collect();
        for (client, _) in &mut clients {
            client.say("WAIT k 60000\n").unwrap();
        }
        becomes("the server waits", || busy(proxy).waits == 6);
        assert_eq!(busy(proxy).connections, 6);
        // Some leave, and some are ended by others of their user, all at once.
        let (mut bob, _) = client_of(proxy, "bob");
        let (mut left, stopped): (Vec<_>, Vec<_>) = clients
            .into_iter()
            .partition(|(_, number)| number.parse::<u64>().unwrap() % 2 == 0);
        left.clear();
        let lanes = || proxy.metrics().open_lanes;
        for (mut client, number) in stopped {
            bob.say(&format!("CANCEL {number}\n")).unwrap();
            assert!(
                lanes() <= 8,
                "six of clients, a shared one, and the one that is kept aside"
            );
            if crate::dedicated::hear(&mut bob).unwrap() == "+" {
                assert_eq!(crate::dedicated::hear(&mut client).unwrap(), "? stopped");
            }
        }
        becomes("all has ended", || {
            assert!(lanes() <= 8);
            busy(proxy).waits == 0
        });
        becomes("it is closed", || lanes() <= 6);
    });
}

/// The server takes its time, and the request that is to be ended has its answer before.
#[test]
fn what_comes_late_ends_nothing_of_another_client() {
    let settings = "timeout: 1m, eject: {failures: 0}";
    over(
        "p",
        &[|| server::start("stoppable, late")],
        settings,
        &LINES,
        |proxy| {
            let (mut ann, number) = client_of(proxy, "ann");
            let (mut bob, _) = client_of(proxy, "ann");
            let (mut eve, _) = client_of(proxy, "ann");
            ann.say("WAIT k 150\n").unwrap();
            becomes("the server waits", || busy(proxy).waits == 1);
            eve.say(&format!("CANCEL {number}\n")).unwrap();
            assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "+");
            for _ in 0..6 {
                assert_eq!(ask(&mut bob, "WAIT k 100").unwrap(), "+");
            }
            assert_eq!(crate::dedicated::hear(&mut eve).unwrap(), "+");
        },
    );
}

/// The cancel is late, and the client goes on at another server meanwhile.
#[test]
fn who_was_stopped_goes_on_elsewhere_at_once() {
    let servers = [
        || server::start("stoppable, late"),
        || server::start("stoppable, late"),
    ];
    over("p", &servers, PATIENT, &LINES, |proxy| {
        let mut ann = Client::each(proxy.address);
        let number = ask(&mut ann, "ID k").unwrap().replace("= ", "");
        let mut eve = Client::new(proxy.address);
        // It ends before the late server does what the cancel says.
        ann.say("WAIT k 250\n").unwrap();
        let waits = |address: &str| server::busy(address.parse().unwrap()).waits;
        becomes("a server waits", || {
            proxy.members.iter().any(|member| waits(&member.address) == 1)
        });
        eve.say(&format!("CANCEL {number}\n")).unwrap();
        assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "+");
        for n in 0..8 {
            assert_eq!(ask(&mut ann, &format!("GET k{n}")).unwrap(), "= nothing");
        }
        assert_eq!(crate::dedicated::hear(&mut eve).unwrap(), "+");
    });
}

/// Each pool has a login of its own, and both are nobody's name.
#[test]
fn nobody_ends_what_is_done_in_a_pool_that_he_cannot_reach() {
    for io in back_ends() {
        let served = ["p", "q"].map(|pool| Served {
            protocol: "lines",
            pool,
            servers: vec![server::start("stoppable").to_string()],
            route: pool,
            settings: PATIENT,
            listener: "",
        });
        let proxy = Proxy::start(io, LINES, &served).unwrap();
        let mut ann = Client::new(proxy.addresses[0]);
        let number = ask(&mut ann, "ID k").unwrap().replace("= ", "");
        ann.say("WAIT k 500\n").unwrap();
        proxy.has_read();
        let mut eve = Client::new(proxy.addresses[1]);
        assert_eq!(
            ask(&mut eve, &format!("CANCEL {number}")).unwrap(),
            "? nothing to cancel"
        );
        assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "+");
    }
}

/// The last client has left, and another worker has the connection by which something is ended.
#[test]
fn what_is_to_be_ended_waits_for_its_turn_when_every_client_has_left() {
    over("p", &[|| server::start("stoppable")], PATIENT, &LINES, |proxy| {
        let cancels = proxy.members[0].health.cancels();
        let mut ann = Client::new(proxy.address);
        ann.say("WAIT k 60000\n").unwrap();
        becomes("the server waits", || busy(proxy).waits == 1);
        assert!(cancels.take());
        drop(ann);
        thread::sleep(Duration::from_millis(500));
        assert_eq!(busy(proxy).waits, 1, "nothing is ended meanwhile");
        cancels.give_back();
        becomes("the wait is ended", || busy(proxy).waits == 0);
    });
}

/// The member counts anew when its settings change, and what there is counts on.
#[test]
fn what_is_counted_of_connections_stays_when_settings_change() {
    let settings = "timeout: 1m, eject: {failures: 3}, dedicated: {total: 2, wait: 100ms}";
    over(
        "p",
        &[|| server::start("stoppable, late")],
        settings,
        &LINES,
        |proxy| {
            let [mut ann, mut bob, mut cid] = [(); 3].map(|()| Client::new(proxy.address));
            let number = ask(&mut ann, "ID k").unwrap().replace("= ", "");
            assert_eq!(ask(&mut ann, "HOLD k").unwrap(), "+");
            ann.say("WAIT k 60000\n").unwrap();
            becomes("the server waits", || busy(proxy).waits == 1);
            let mut eve = Client::new(proxy.address);
            eve.say(&format!("CANCEL {number}\n")).unwrap();
            proxy.has_read();
            proxy.reload("failures: 3", "failures: 4");
            assert_eq!(ask(&mut bob, "HOLD k").unwrap(), "+");
            let said = ask(&mut cid, "HOLD k").unwrap();
            assert!(said.contains("are in use"), "{said}");
            assert_eq!(crate::dedicated::hear(&mut eve).unwrap(), "+");
            assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "? stopped");
            let old = &proxy.members[0].health;
            becomes("another pool may have the old count of cancels", || {
                old.cancels().take()
            });
            becomes("another pool may have the old count of lanes", || {
                old.quota().take(1)
            });
            drop((ann, bob));
            becomes("their lanes have ended", || proxy.owned_lanes() == 0);
            proxy.reload("failures: 4", "failures: 3");
        },
    );
}

/// Another worker has the connection for ever.
#[test]
fn what_cannot_be_ended_in_time_is_answered() {
    stoppable("timeout: 1m, eject: {failures: 0}", |proxy| {
        let (mut ann, number) = client_of(proxy, "ann");
        let (mut again, _) = client_of(proxy, "ann");
        ann.say("WAIT k 12000\n").unwrap();
        becomes("the server waits", || busy(proxy).waits == 1);
        assert!(proxy.members[0].health.cancels().take());
        assert_eq!(
            ask(&mut again, &format!("CANCEL {number}")).unwrap(),
            "? nothing to cancel"
        );
        assert_eq!(crate::dedicated::hear(&mut ann).unwrap(), "+");
        assert_eq!(ask(&mut ann, "WAIT k 1").unwrap(), "+");
    });
}
