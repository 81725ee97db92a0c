//! A pool whose members have roles: one takes writes, the others are read. Its state asks them for their
//! roles, and for what makes a read fresh.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use proxima::{
    config::schema::{Pool, Server},
    control,
    members::{OwnLocation, Registry},
    protocol::{
        Answerer, HoldLimit, Monitor, PoolChanges, PoolMembers, PoolOrders, PoolQuestion, PoolRequest,
        PoolState, Protocols, ServerAnswer,
    },
};
use proxima_wire::message::Class;

use crate::{
    client::Client,
    conversation::over,
    lines::{Lines, number},
    proxy::{PATIENT, Proxy},
    server::{self, PASSWORD},
};

static KNOWN: Lines = Lines::stateful(PASSWORD, |settings| {
    Box::new(Roles {
        writer: Mutex::new(None),
        fresh: AtomicU64::new(0),
        changes: settings.changes.clone(),
        orders: Arc::clone(&settings.orders),
        has_held: AtomicBool::new(false),
    })
});
static ROLES: Protocols = Protocols::new(&[&KNOWN]);

/// The server that is asked for its role says this.
const WRITER: &str = "= writer\n";
const ROLE: u64 = u64::MAX;

struct Roles {
    /// The position of the member that takes writes.
    writer: Mutex<Option<usize>>,
    /// When the newest barrier was begun that is over.
    fresh: AtomicU64,
    changes: PoolChanges,
    orders: Arc<PoolOrders>,
    /// The key `late` was held once.
    has_held: AtomicBool,
}

/// A read that waits for a barrier which began after it came.
fn must_be_fresh(asked: &PoolRequest<'_>) -> bool {
    asked.key.starts_with(b"fresh") && asked.class == Class::Read
}

impl Roles {
    /// An order names a member by its position.
    fn writer(&self) -> Option<usize> {
        let ordered = self.orders.writer().and_then(|wish| wish.address.parse().ok());
        ordered.or(*self.writer.lock().unwrap())
    }
}

impl PoolState for Roles {
    fn has_one_writer(&self) -> bool {
        true
    }

    fn may_hold(&self) -> bool {
        true
    }

    /// Nothing is sent before it is known who takes writes.
    fn holds(&self, asked: &PoolRequest<'_>, _: &dyn PoolMembers) -> bool {
        if asked.key == b"late" {
            if !self.has_held.swap(true, Relaxed) {
                // The state changes behind this very answer.
                self.changes.note();
                return true;
            }
            // One that is asked for again only at the end of its time has missed that.
            return asked.unix - asked.since >= 5_000_000;
        }
        self.writer().is_none() || must_be_fresh(asked) && self.fresh.load(Relaxed) < asked.since
    }

    fn hold_limit(&self, _: &PoolRequest<'_>) -> HoldLimit {
        HoldLimit::DEFAULT
    }

    fn barrier(&self, asked: &PoolRequest<'_>, _: &dyn PoolMembers) -> Option<PoolQuestion> {
        let member = self.writer().filter(|_| must_be_fresh(asked))?;
        Some(PoolQuestion {
            member,
            command: number("MARK"),
            message: b"MARK m\n".to_vec(),
            token: asked.unix,
        })
    }

    fn answered(&self, token: u64, of: &Answerer<'_>, heard: ServerAnswer<'_>) {
        let member = of.position;
        match (token, heard) {
            (ROLE, ServerAnswer::Reply(_, bytes)) if bytes == WRITER.as_bytes() => {
                *self.writer.lock().unwrap() = Some(member);
            }
            (ROLE, _) if self.writer() == Some(member) => *self.writer.lock().unwrap() = None,
            (ROLE, _) | (_, ServerAnswer::Failed(_)) => return,
            (begun, ServerAnswer::Reply(..)) => drop(self.fresh.fetch_max(begun, Relaxed)),
        }
        self.changes.note();
    }

    /// Reads go to the nearest member that is up and does not take writes, but for clients that log in as
    /// `writer`, and for keys that say where.
    fn member(&self, asked: &PoolRequest<'_>, members: &dyn PoolMembers) -> Option<usize> {
        let writer = self.writer()?;
        let said = asked.message.ends_with(b" at-writer\n");
        if asked.class != Class::Read || asked.session.login == b"writer" || said {
            return Some(writer);
        }
        let up = |&at: &usize| at != writer && members.at(at).is_some_and(|member| member.is_up);
        let readers = (0..members.count()).filter(up);
        readers
            .min_by_key(|&at| members.at(at).map(|member| (member.distance, at)))
            .or(Some(writer))
    }

    fn primary(&self, _: &dyn PoolMembers) -> Option<usize> {
        self.writer()
    }

    fn monitors(&self) -> Vec<Monitor> {
        vec![Monitor {
            interval: Duration::from_millis(20),
            command: number("GET"),
            message: b"GET role\n".to_vec(),
            token: ROLE,
        }]
    }
}

/// Runs a test over three servers, of which nobody has told their roles yet.
fn three(test: impl Fn(&Proxy)) {
    let servers = ["one", "two", "three"].map(|name| move || server::start(name));
    over("p", &servers, PATIENT, &ROLES, test);
}

/// Tells the pool which member takes writes.
fn elect(proxy: &Proxy, position: usize) {
    let member = &proxy.members[position];
    let state = member.pool.state.as_ref().unwrap();
    let reply = proxima_wire::message::Reply::new(proxima_wire::message::Outcome::Found, WRITER.len());
    state.answered(
        ROLE,
        &proxy.members[position].answerer(position),
        ServerAnswer::Reply(&reply, WRITER.as_bytes()),
    );
}

fn server_of(said: &str) -> &str {
    said.rsplit(' ').next().unwrap()
}

#[test]
fn requests_go_by_role_by_session_and_by_their_own_words() {
    three(|proxy| {
        elect(proxy, 1);
        let mut client = Client::new(proxy.address);
        assert_eq!(client.ask("PUT k v").unwrap(), "+");
        assert_eq!(
            client.ask("GET k").unwrap(),
            "= nothing",
            "a reader has not got it"
        );
        assert_eq!(server_of(&client.ask("WHO k").unwrap()), "one");
        assert_eq!(server_of(&client.ask("WHO k at-writer").unwrap()), "two");
        assert_eq!(client.ask("USE writer").unwrap(), "+");
        assert_eq!(client.ask("GET k").unwrap(), "= v of two");
        assert_eq!(client.ask("USE ").unwrap(), "+");
        // A reader that is down is passed over.
        let health = &proxy.members[0].health;
        while health.is_up() {
            health.failed(proxima::members::Failure::Refused);
        }
        assert_eq!(server_of(&client.ask("WHO k").unwrap()), "three");
    });
}

#[test]
fn what_concerns_every_server_goes_to_the_one_that_is_the_pool() {
    three(|proxy| {
        for (position, name) in [(0, "one"), (2, "three")] {
            elect(proxy, position);
            let mut client = Client::new(proxy.address);
            assert_eq!(client.ask("SUM k").unwrap(), format!("= {name}"));
        }
    });
}

#[test]
fn requests_wait_for_the_monitor_and_go_on_in_the_moment_of_the_change() {
    three(|proxy| {
        let mut client = Client::new(proxy.address);
        client.say("PUT k v\nWHO k at-writer\n").unwrap();
        proxy.has_read();
        assert_eq!(proxy.metrics().in_flight, 0, "nobody takes writes yet");
        // The second server says that it does, to whom asks it.
        let mut direct = Client::new(proxy.address);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let member = Arc::clone(&proxy.members[1]);
        let question = member.pool.state.as_ref().unwrap().monitors().remove(0);
        server::tell(member.address.parse().unwrap(), "role", "writer");
        let watched = runtime.spawn(async move { control::monitor(&member, 1, &question, &|| 0).await });
        runtime.block_on(async {
            let begun = Instant::now();
            while proxy.members[1].pool.changes.count() == 0 && begun.elapsed() < Duration::from_secs(10) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        watched.abort();
        assert_eq!(client.hear().unwrap(), "+");
        assert_eq!(server_of(&client.hear().unwrap()), "two");
        assert_eq!(server_of(&direct.ask("WHO k at-writer").unwrap()), "two");
    });
}

#[test]
fn a_pool_is_held_and_its_writer_moves_by_order_without_an_error() {
    three(|proxy| {
        elect(proxy, 0);
        let pool = &proxy.members[0].pool;
        let mut client = Client::new(proxy.address);
        assert_eq!(server_of(&client.ask("WHO k at-writer").unwrap()), "one");
        for (position, name) in [(1, "two"), (2, "three"), (0, "one")] {
            pool.orders.hold(true);
            pool.changes.note();
            client.say("PUT k v\nWHO k at-writer\n").unwrap();
            proxy.has_read();
            assert_eq!(proxy.metrics().in_flight, 0, "what comes now waits");
            let number = pool
                .orders
                .order_writer(&position.to_string(), Duration::ZERO, false);
            pool.orders.settle_writer(number.unwrap());
            pool.orders.hold(false);
            pool.changes.note();
            assert_eq!(client.hear().unwrap(), "+");
            assert_eq!(server_of(&client.hear().unwrap()), name);
        }
        pool.orders.end_writer(3);
        pool.changes.note();
        assert_eq!(server_of(&client.ask("WHO k at-writer").unwrap()), "one");
    });
}

#[test]
fn a_request_does_not_wait_for_a_change_that_came_while_it_was_held() {
    three(|proxy| {
        elect(proxy, 0);
        let mut client = Client::new(proxy.address);
        assert_eq!(server_of(&client.ask("WHO late at-writer").unwrap()), "one");
    });
}

#[test]
fn a_fresh_read_waits_for_a_barrier_that_began_after_it() {
    three(|proxy| {
        elect(proxy, 2);
        let mut client = Client::new(proxy.address);
        for round in 0..5 {
            let before = proxy.members[0].pool.changes.count();
            let read = client.ask("GET fresh-k").unwrap();
            assert_eq!(read, "= nothing", "round {round}");
            assert!(
                proxy.members[0].pool.changes.count() > before,
                "a barrier was over"
            );
            // One that need not be fresh waits for none.
            let before = proxy.members[0].pool.changes.count();
            assert_eq!(client.ask("GET k").unwrap(), "= nothing");
            assert_eq!(proxy.members[0].pool.changes.count(), before);
        }
        // The barriers were on a connection of the pool's own.
        let lanes: Vec<u64> = proxy
            .metrics()
            .members
            .iter()
            .map(|member| member.lanes)
            .collect();
        assert_eq!(lanes.iter().sum::<u64>(), 2, "{lanes:?}");
    });
}

/// Its number and what was ordered for it stay.
#[test]
fn the_state_of_a_pool_is_made_anew_when_its_settings_change() {
    let mut registry = Registry::new(OwnLocation::new(&[], None));
    let server = Server {
        address: "127.0.0.1:1".into(),
        name: None,
        weight: 1.0,
        zone: None,
        pod: None,
    };
    let mut pool = |timeout| {
        let spec = Pool {
            timeout: Duration::from_millis(timeout),
            ..Pool::of(vec![server.clone()])
        };
        let member = registry.member("p", &spec, &server, &KNOWN).unwrap();
        (Arc::clone(&member.pool), member)
    };
    let ((first, member), (same, _), (other, changed)) = (pool(100), pool(100), pool(200));
    let state =
        |pool: &proxima::members::Pool| std::ptr::from_ref(&**pool.state.as_ref().unwrap()).cast::<()>();
    assert_eq!(state(&first), state(&same));
    assert_ne!(state(&first), state(&other));
    assert_eq!((first.id, member.id), (other.id, changed.id));
    first.count.raise();
    assert!(member.reached.raise(changed.reached.mark(1)));
    assert_eq!(
        (other.count.get(), changed.reached.get()),
        (1, 1),
        "what was counted stays"
    );
    member.draining.order(true);
    assert!(changed.drains(), "it drains in either");
    member.draining.order(false);
}
