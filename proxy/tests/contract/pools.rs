//! Pools with run-time state of their protocol.

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use proxima::protocol::{PoolState, Protocols};
use proxima_wire::message::Class;

use crate::{
    client::Client,
    conversation::over,
    dedicated::ask,
    lines::Lines,
    proxy::{PATIENT, Proxy},
    server::{self, PASSWORD},
};

static KNOWN: Lines = Lines::learning(PASSWORD);
static LEARNING: Protocols = Protocols::new(&[&KNOWN]);

/// Keys whose requests the pool holds.
static HELD: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

/// The state of a pool: which server has a key, as far as replies have shown.
#[derive(Default)]
pub(crate) struct Places(Mutex<HashMap<Vec<u8>, String>>);

impl PoolState for Places {
    fn holds(&self, _: Class, key: &[u8]) -> bool {
        HELD.lock().unwrap().contains(key)
    }

    fn member(&self, _: Class, key: &[u8], addresses: &[Arc<str>]) -> Option<usize> {
        let places = self.0.lock().unwrap();
        let place = places.get(key)?;
        addresses.iter().position(|address| **address == **place)
    }

    fn redirect(&self, key: &[u8], reply: &[u8], addresses: &[Arc<str>]) -> Option<usize> {
        let place = str::from_utf8(reply).ok()?.strip_prefix("~ moved ")?.trim_end();
        let found = addresses.iter().position(|address| **address == *place)?;
        self.0.lock().unwrap().insert(key.to_owned(), place.to_owned());
        Some(found)
    }
}

fn each(settings: &str, test: impl Fn(&Proxy)) {
    let servers = ["one", "two", "three"].map(|name| move || server::start(name));
    over("p", &servers, settings, &LEARNING, test);
}

#[test]
fn request_goes_where_a_redirect_sent_an_earlier_one_for_its_key() {
    each(PATIENT, |proxy| {
        let mut client = Client::new(proxy.address);
        for member in &proxy.members {
            let key = format!("at-{}", member.address.rsplit(':').next().unwrap());
            assert_eq!(client.ask(&format!("PUT {key} v")).unwrap(), "+");
            let sent_on = proxy.metrics().failovers;
            let value = client.ask(&format!("GET {key}")).unwrap();
            assert!(value.starts_with("= v of "), "{value}");
            assert_eq!(proxy.metrics().failovers, sent_on, "the pool knows by now");
        }
        // For each key, one of the three servers is the one to which the hash leads anyway.
        assert!(proxy.metrics().failovers <= 3);
        assert!(
            client.ask("GET at-1").unwrap().starts_with("~ moved "),
            "nobody has it"
        );
    });
}

/// The connection that the first server has answered on is given back before: the client has none for itself.
#[test]
fn a_request_on_a_connection_of_its_own_goes_where_a_redirect_sends_it() {
    each(PATIENT, |proxy| {
        let mut client = Client::new(proxy.address);
        assert_eq!(ask(&mut client, "EACH k").unwrap(), "+");
        for member in &proxy.members {
            let key = format!("at-{}", member.address.rsplit(':').next().unwrap());
            assert_eq!(ask(&mut client, &format!("PUT {key} v")).unwrap(), "+");
            let value = ask(&mut client, &format!("GET {key}")).unwrap();
            assert!(value.starts_with("= v of "), "{value}");
        }
        assert!(proxy.metrics().failovers > 0, "some were sent on");
        // Within what a server keeps for it, a request stays there.
        assert_eq!(ask(&mut client, "HOLD h").unwrap(), "+");
    });
}

#[test]
fn held_request_waits_for_its_pool_and_others_do_not() {
    each(PATIENT, |proxy| {
        let (mut client, mut other) = (Client::new(proxy.address), Client::new(proxy.address));
        assert_eq!(client.ask("PUT held-k v").unwrap(), "+");
        HELD.lock().unwrap().insert(b"held-k".to_vec());
        client.say("GET held-k\nWHO w\n").unwrap();
        let mut leaves = Client::new(proxy.address);
        leaves.say("PUT held-k another\n").unwrap();
        assert_eq!(other.ask("PUT other v").unwrap(), "+");
        leaves.reset();
        while proxy.metrics().clients.closed == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        HELD.lock().unwrap().remove(b"held-k".as_slice());
        assert!(client.hear().unwrap().starts_with("= v of "));
        assert!(client.hear().unwrap().starts_with("= connection "));
    });
}

#[test]
fn request_that_its_pool_holds_for_too_long_is_answered_with_an_error() {
    each("timeout: 100ms, eject: {failures: 0}", |proxy| {
        let mut client = Client::new(proxy.address);
        HELD.lock().unwrap().insert(b"kept-k".to_vec());
        let held = client.ask("GET kept-k").unwrap();
        assert!(held.ends_with("its pool held it back for too long"), "{held}");
        assert!(client.ask("WHO w").unwrap().starts_with("= connection "));
        HELD.lock().unwrap().remove(b"kept-k".as_slice());
    });
}
