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
