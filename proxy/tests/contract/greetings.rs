//! What clients are greeted with before a member is chosen for them: what members have told of themselves.

use std::{net::SocketAddr, sync::mpsc, time::Duration};

use proxima::{
    protocol::{PoolMembers, PoolRequest, PoolState, Protocols},
    upstream::{Close, Closed},
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
    fn member(&self, _: &PoolRequest<'_>, members: &dyn PoolMembers) -> Option<usize> {
        self.primary(members)
    }

    fn primary(&self, members: &dyn PoolMembers) -> Option<usize> {
        let ordered = self.0.writer()?.address;
        (0..members.count()).find(|&at| members.at(at).is_some_and(|member| member.address == ordered))
    }
}

fn two(test: impl Fn(&Proxy)) {
    let servers = ["one", "two"].map(|name| move || server::start(name));
    over("p", &servers, PATIENT, &GREETING, test);
}

/// Orders that this member is the pool to clients.
fn order(proxy: &Proxy, member: usize) {
    let member = &proxy.members[member];
    let orders = &member.pool.orders;
    let number = orders.order_writer(&member.address, Duration::ZERO, false);
    orders.settle_writer(number.unwrap());
}

fn address(proxy: &Proxy, member: usize) -> SocketAddr {
    proxy.members[member].address.parse().unwrap()
}

/// Has this member log the proxy in, on a new connection.
fn log_in(proxy: &Proxy, member: usize) {
    let (done, told) = mpsc::channel();
    let id = proxy.members[member].id;
    proxy.order(Order::Close {
        closed: Closed::Member(id),
        when: Close::Now,
        done,
    });
    told.recv().unwrap();
    order(proxy, member);
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
        order(proxy, 0);
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
