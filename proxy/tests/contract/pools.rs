//! Pools with run-time state of their protocol.

use std::{
    collections::{BTreeSet, HashMap},
    sync::Mutex,
    thread,
    time::Duration,
};

use proxima::protocol::{HoldLimit, PoolMembers, PoolRequest, PoolState, Protocols, Tried};

use crate::{
    client::Client,
    conversation::over,
    dedicated::ask,
    lines::Lines,
    proxy::{PATIENT, Proxy},
    server::{self, PASSWORD, digest},
};

static KNOWN: Lines = Lines::stateful(PASSWORD, |settings| {
    Box::new(Places {
        known: Mutex::default(),
        limit: HoldLimit {
            time: settings.timeout,
            again: settings.timeout,
            requests: 3,
            bytes: 200,
        },
    })
});
static LEARNING: Protocols = Protocols::new(&[&KNOWN]);

/// Keys whose requests the pool holds.
static HELD: Mutex<BTreeSet<Vec<u8>>> = Mutex::new(BTreeSet::new());

/// The state of a pool: which server has a key, as far as replies have shown.
struct Places {
    known: Mutex<HashMap<Vec<u8>, String>>,
    limit: HoldLimit,
}

fn position(members: &dyn PoolMembers, address: &str) -> Option<usize> {
    (0..members.count()).find(|&at| members.at(at).is_some_and(|member| member.address == address))
}

impl PoolState for Places {
    fn may_hold(&self) -> bool {
        true
    }

    fn holds(&self, asked: &PoolRequest<'_>, _: &dyn PoolMembers) -> bool {
        HELD.lock().unwrap().contains(asked.key)
    }

    fn hold_limit(&self, _: &PoolRequest<'_>) -> HoldLimit {
        self.limit
    }

    fn member(&self, asked: &PoolRequest<'_>, members: &dyn PoolMembers) -> Option<usize> {
        let known = self.known.lock().unwrap();
        position(members, known.get(asked.key)?)
    }

    fn may_redirect(&self) -> bool {
        true
    }

    fn redirect(
        &self,
        asked: &PoolRequest<'_>,
        reply: &[u8],
        _: Tried,
        members: &dyn PoolMembers,
    ) -> Option<usize> {
        let place = str::from_utf8(reply).ok()?.strip_prefix("~ moved ")?.trim_end();
        let found = position(members, place)?;
        self.known
            .lock()
            .unwrap()
            .insert(asked.key.to_owned(), place.to_owned());
        Some(found)
    }
}

/// The pool holds requests for this key no more.
fn release(proxy: &Proxy, key: &str) {
    HELD.lock().unwrap().remove(key.as_bytes());
    proxy.members[0].pool.changes.note();
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
        // Ports are chance: the hash leads one key to its server anyway once in three times.
        for (member, number) in proxy
            .members
            .iter()
            .flat_map(|member| (0..10).map(move |n| (member, n)))
        {
            let key = format!("at-{}/{number}", member.address.rsplit(':').next().unwrap());
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
        release(proxy, "held-k");
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
        release(proxy, "kept-k");
    });
}

#[test]
fn a_value_is_held_before_its_first_byte_and_then_passes() {
    each(PATIENT, |proxy| {
        let (mut client, mut other) = (Client::new(proxy.address), Client::new(proxy.address));
        let value = "0123456789".repeat(50_000);
        HELD.lock().unwrap().insert(b"blob-k".to_vec());
        client
            .say(&format!("BLOB blob-k {}\n{}", value.len(), &value[..100_000]))
            .unwrap();
        proxy.has_read();
        assert_eq!(other.ask("GET other").unwrap(), "= nothing");
        assert_eq!(proxy.metrics().in_flight, 0, "no server has a byte of it");
        release(proxy, "blob-k");
        client.say(&format!("{}GET blob-k\n", &value[100_000..])).unwrap();
        assert_eq!(client.hear().unwrap(), "+");
        let expected = format!("= {} of ", digest(value.as_bytes()));
        assert!(client.hear().unwrap().starts_with(&expected));
    });
    // One that waits too long is answered, and its value is thrown away.
    each("timeout: 100ms, eject: {failures: 0}", |proxy| {
        let mut client = Client::new(proxy.address);
        let value = "x".repeat(200_000);
        HELD.lock().unwrap().insert(b"late-k".to_vec());
        client
            .say(&format!("BLOB late-k {}\n{value}WHO w\n", value.len()))
            .unwrap();
        let refused = client.hear().unwrap();
        assert!(
            refused.ends_with("its pool held it back for too long"),
            "{refused}"
        );
        assert!(client.hear().unwrap().starts_with("= connection "));
        release(proxy, "late-k");
    });
}

#[test]
fn what_waits_for_a_pool_is_bounded_in_number_and_bytes() {
    each(PATIENT, |proxy| {
        HELD.lock().unwrap().insert(b"many-k".to_vec());
        let mut clients: Vec<Client> = (0..3).map(|_| Client::new(proxy.address)).collect();
        for client in &mut clients {
            client.say("GET many-k\n").unwrap();
        }
        proxy.has_read();
        let refused = Client::new(proxy.address).ask("GET many-k").unwrap();
        assert_eq!(refused, "? proxy: too many requests wait for pool p");
        release(proxy, "many-k");
        for client in &mut clients {
            assert_eq!(client.hear().unwrap(), "= nothing");
        }
        let long = format!("PUT long-k {}", "x".repeat(250));
        HELD.lock().unwrap().insert(b"long-k".to_vec());
        let refused = clients[0].ask(&long).unwrap();
        assert_eq!(refused, "? proxy: too many requests wait for pool p");
        release(proxy, "long-k");
        assert_eq!(clients[0].ask(&long).unwrap(), "+");
    });
}
