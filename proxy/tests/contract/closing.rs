//! Orders to close the connections to a member, and when they are acknowledged.

use std::{
    sync::mpsc::{self, Receiver, TryRecvError},
    time::Duration,
};

use proxima::{
    upstream::{Close, Closed},
    worker::Order,
};

use crate::{
    client::Client,
    conversation::over,
    dedicated,
    lines::LINES,
    proxy::{PATIENT, Proxy},
    server,
};

fn one(test: impl Fn(&Proxy)) {
    over("p", &[|| server::start("one")], PATIENT, &LINES, test);
}

fn ask(client: &mut Client, line: &str) -> String {
    client.say(&format!("{line}\n")).unwrap();
    hear(client)
}

fn hear(client: &mut Client) -> String {
    dedicated::hear(client).unwrap_or_else(|_| "closed".into())
}

fn close(proxy: &Proxy, when: Close) -> Receiver<()> {
    let (done, told) = mpsc::channel();
    let member = proxy.members[0].id;
    proxy.order(Order::Close {
        closed: Closed::Member(member),
        when,
        done,
    });
    told
}

/// Clients: with a request under way on a shared lane, in a transaction, with a request under way in one, and
/// with a statement alone.
fn clients(proxy: &Proxy) -> [Client; 4] {
    let mut clients = [(); 4].map(|()| Client::new(proxy.address));
    let [shared, holds, waits, each] = &mut clients;
    assert!(ask(shared, "GET k").starts_with('='));
    for client in [&mut *holds, &mut *waits] {
        assert_eq!(ask(client, "HOLD k"), "+");
    }
    waits.say("WAIT k 400\n").unwrap();
    each.say("EACH k\nWAIT k 400\n").unwrap();
    assert_eq!(hear(each), "+");
    proxy.has_read();
    clients
}

#[test]
fn connections_that_are_closed_when_idle_take_nothing_from_a_client() {
    one(|proxy| {
        let [mut shared, mut holds, mut waits, mut each] = clients(proxy);
        let told = close(proxy, Close::WhenIdle);
        assert!(ask(&mut shared, "GET k").starts_with('='));
        assert_eq!(hear(&mut waits), "+");
        assert_eq!(hear(&mut each), "+");
        assert_eq!(
            told.try_recv(),
            Err(TryRecvError::Empty),
            "clients hold two of them"
        );
        for client in [&mut holds, &mut waits] {
            assert_eq!(ask(client, "FREE k"), "+");
        }
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        for client in [&mut shared, &mut holds, &mut waits, &mut each] {
            assert!(ask(client, "GET k").starts_with('='));
        }
    });
}

#[test]
fn connections_that_are_closed_after_the_reply_end_what_is_kept_there() {
    one(|proxy| {
        let [mut shared, mut holds, mut waits, mut each] = clients(proxy);
        let told = close(proxy, Close::AfterReply);
        assert_eq!(hear(&mut waits), "+");
        assert_eq!(hear(&mut each), "+");
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert_eq!(hear(&mut holds), "closed");
        assert_eq!(hear(&mut waits), "closed");
        for client in [&mut shared, &mut each] {
            assert!(ask(client, "GET k").starts_with('='));
        }
    });
}

#[test]
fn connections_that_are_closed_now_fail_what_waits_on_them() {
    one(|proxy| {
        let [mut shared, mut holds, mut waits, mut each] = clients(proxy);
        let told = close(proxy, Close::Now);
        told.recv_timeout(Duration::from_secs(10)).unwrap();
        assert!(hear(&mut each).ends_with("its connection was closed by an order"));
        assert!(hear(&mut waits).ends_with("its connection was closed by an order"));
        assert_eq!(hear(&mut waits), "closed");
        assert_eq!(hear(&mut holds), "closed");
        for client in [&mut shared, &mut each] {
            assert!(ask(client, "GET k").starts_with('='));
        }
        assert_eq!(
            proxy
                .metrics()
                .members
                .iter()
                .map(|member| member.failures)
                .sum::<u64>(),
            0
        );
    });
}
