//! A client has ended what a server does for another one, whichever worker that is at.

use std::{
    thread,
    time::{Duration, Instant},
};

use crate::{client::Client, conversation::over, dedicated::ask, lines::LINES, proxy::Proxy, server};

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
            "? nothing to cancel"
        );
        let begun = Instant::now();
        ann.say("WAIT k 60000\n").unwrap();
        bob.say("WAIT k 500\n").unwrap();
        thread::sleep(Duration::from_millis(100));
        // The server may not have the request yet.
        while ask(&mut eve, &format!("CANCEL {number}")).unwrap() != "+" {
            assert!(begun.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(10));
        }
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
        thread::sleep(Duration::from_millis(50));
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

fn becomes(what: &str, is_so: impl Fn() -> bool) {
    let so = (0..2000).any(|_| {
        thread::sleep(Duration::from_millis(5));
        is_so()
    });
    assert!(so, "{what}");
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
