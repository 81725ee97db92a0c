//! What clients are greeted with before a member is chosen for them: what members have told of themselves.

use std::{net::SocketAddr, sync::mpsc};

use proxima::{
    protocol::{PoolMembers, PoolRequest, PoolState, Protocols},
    upstream::Close,
    worker::Order,
};

use crate::{
    client::Client,
    conversation::over,
    lines::Lines,
    proxy::{PATIENT, Proxy},
    server::{self, PASSWORD},
};

static KNOWN: Lines = Lines::greeting(PASSWORD, |settings| {
    Box::new(Ordered(std::sync::Arc::clone(&settings.orders)))
});
static GREETING: Protocols = Protocols::new(&[&KNOWN]);

/// An operator says which member is the pool to a client, and so takes all requests.
struct Ordered(std::sync::Arc<proxima::protocol::PoolOrders>);

impl PoolState for Ordered {
    fn member(&self, _: &PoolRequest<'_>, _: &dyn PoolMembers) -> Option<usize> {
        self.0.writer()
    }

    fn primary(&self, _: &dyn PoolMembers) -> Option<usize> {
        self.0.writer()
    }
}

fn two(test: impl Fn(&Proxy)) {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    over("p", &servers, PATIENT, &GREETING, test);
}

fn address(proxy: &Proxy, member: usize) -> SocketAddr {
    proxy.members[member].address.parse().unwrap()
}

/// Has this member log the proxy in, on a new connection.
fn log_in(proxy: &Proxy, member: usize) {
    let (done, told) = mpsc::channel();
    let id = proxy.members[member].id;
    proxy.order(Order::Close {
        member: id,
        when: Close::Now,
        done,
    });
    told.recv().unwrap();
    proxy.members[0].pool.orders.set_writer(Some(member));
    let greeting = Client::greeting(proxy.address);
    let mut client = Client::connect_greeted(proxy.address, &greeting);
    let who = client.ask("WHO k").unwrap();
    assert!(who.ends_with(["one", "two"][member]), "{who}");
}

#[test]
fn clients_are_greeted_with_what_the_first_member_has_told_and_what_all_can() {
    two(|proxy| {
        assert_eq!(
            Client::greeting(proxy.address),
            "configured",
            "nobody has told anything"
        );
        server::set_version(address(proxy, 0), "8.0 eof track");
        server::set_version(address(proxy, 1), "9.7 track query eof");
        log_in(proxy, 0);
        assert_eq!(Client::greeting(proxy.address), "8.0+eof+track");
        log_in(proxy, 1);
        // It is the pool to a client now.
        assert_eq!(Client::greeting(proxy.address), "9.7+track+eof");
        proxy.members[0].pool.orders.set_writer(Some(0));
        assert_eq!(Client::greeting(proxy.address), "8.0+eof+track");
        // One is upgraded.
        server::set_version(address(proxy, 0), "9.7 track");
        assert_eq!(
            Client::greeting(proxy.address),
            "8.0+eof+track",
            "it has not told yet"
        );
        log_in(proxy, 0);
        assert_eq!(Client::greeting(proxy.address), "9.7+track");
        // One that tells a whole book is not heard.
        server::set_version(address(proxy, 0), &"x".repeat(2000));
        log_in(proxy, 0);
        assert_eq!(Client::greeting(proxy.address), "9.7+track");
    });
}
