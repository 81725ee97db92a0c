//! What many peers cost their leader: a measurement. The peers are simulated as far as a leader knows them:
//! each listens, answers probes, sends heartbeats, and hears of views.

#![allow(clippy::unwrap_used)]

use std::{
    fs,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
        mpsc,
    },
    thread,
    time::{Duration, Instant},
};

use rustix::time::{ClockId, clock_gettime};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    runtime::{Builder, Handle},
    time::sleep,
};

use super::{
    Fleet, Settings,
    channel::{Accept, Hello, Stream, listen, packet},
    links::Links,
    message::{Introduction, Message, Reply},
    now,
    raft::Consensus,
    security::Security,
    who::Who,
};
use crate::{
    config::schema::{self, Peers, Role},
    fleet::{Change, Heartbeat, Peer, Slot, Stay},
    route::Random,
};

const SUBSCRIBERS: usize = 500;
/// Between two heartbeats of a subscriber: that of a lease of a second.
const BEAT: Duration = Duration::from_millis(200);
const LEASE: Duration = Duration::from_mins(1);
/// The time that is measured.
const MEASURED: Duration = Duration::from_secs(10);

struct Subscriber {
    introduction: Introduction,
    address: SocketAddr,
    /// The number of the newest view that it has heard of.
    heard: AtomicU64,
    grants: AtomicU64,
}

impl Accept for Subscriber {
    fn accept(self: &Arc<Self>, _: Hello, stream: Stream, early: Vec<u8>) {
        tokio::spawn(Arc::clone(self).serve(stream, early));
    }
}

impl Subscriber {
    /// Answers the leader on one connection.
    async fn serve(self: Arc<Self>, mut stream: Stream, mut received: Vec<u8>) {
        loop {
            for (number, message) in packet::take_all::<(u64, Message)>(&mut received).unwrap() {
                let reply = match message {
                    Message::Probe => Reply::Probe(self.introduction.clone()),
                    Message::Roster(roster) => {
                        self.heard.fetch_max(roster.view.number, Relaxed);
                        Reply::Done
                    }
                    _ => Reply::Done,
                };
                if stream
                    .write_all(&packet::write(&(number, reply)).unwrap())
                    .await
                    .is_err()
                {
                    return;
                }
            }
            match stream.read_buf(&mut received).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
        }
    }

    /// Sends heartbeats for ever.
    async fn live(self: Arc<Self>, leader: SocketAddr, links: Links, stay: Stay) {
        loop {
            let heard = self.heard.load(Relaxed);
            let beat = Heartbeat {
                name: self.introduction.name.clone(),
                stay,
                sent: now(),
                installed: heard,
                settled: heard,
                knows: heard,
                ..Heartbeat::default()
            };
            let asked = links
                .ask(leader, Message::Heartbeat(beat), Duration::from_secs(5))
                .await;
            if let Ok(Reply::Grant(grant)) = asked {
                self.grants.fetch_add(u64::from(grant.granted), Relaxed);
                if let Some(roster) = grant.roster {
                    self.heard.fetch_max(roster.view.number, Relaxed);
                }
            }
            sleep(BEAT).await;
        }
    }
}

fn config(dir: &std::path::Path) -> schema::Fleet {
    schema::Fleet {
        listen: "127.0.0.1:0".to_owned(),
        announce: None,
        peers: Peers::Listed(Vec::new()),
        name: Some("leader".to_owned()),
        dir: dir.to_owned(),
        voters: None,
        expect: 1,
        role: Role::Peer,
        // Nobody is to be left out while all of them begin, which costs the subscribers much.
        lease: LEASE,
        suspect: Duration::from_secs(5),
        tls: None,
    }
}

/// A leader on a thread of its own, whose processor time is what it costs.
fn lead(config: schema::Fleet) -> (Arc<Fleet>, Handle) {
    let (tell, begun) = mpsc::channel();
    thread::spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (fleet, _peering) = Fleet::start(config, Random(1), (1, None), (Vec::new(), Vec::new()))
                .await
                .unwrap();
            tell.send((fleet, Handle::current())).unwrap();
            std::future::pending::<()>().await;
        });
    });
    begun.recv().unwrap()
}

async fn processor_time(leader: &Handle) -> Duration {
    let time = leader
        .spawn(async { clock_gettime(ClockId::ThreadCPUTime) })
        .await
        .unwrap();
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Kilobytes of memory of this process, with the leader and all subscribers.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn begin(number: usize, fleet: u128, settings: &Settings, who: &Arc<Who>) -> Arc<Subscriber> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("s{number:03}");
    let subscriber = Arc::new(Subscriber {
        introduction: Introduction {
            name: name.clone(),
            identity: number as u128 + 1,
            fleet: Some(fleet),
            lowest: name,
            leader: None,
            witness: false,
            time: 0,
            settings: settings.clone(),
        },
        address: listener.local_addr().unwrap(),
        heard: AtomicU64::new(0),
        grants: AtomicU64::new(0),
    });
    let security = Arc::new(Security::open(None).unwrap());
    tokio::spawn(listen(
        listener,
        Arc::clone(who),
        security,
        Arc::clone(&subscriber),
    ));
    subscriber
}

fn peer(subscriber: &Subscriber) -> Peer {
    Peer {
        name: subscriber.introduction.name.clone(),
        identity: subscriber.introduction.identity,
        process: 1,
        address: subscriber.address,
        stay: Stay::default(),
        slot: Slot::default(),
        decides: false,
        workers: 1,
        lease: LEASE.as_micros() as u64,
        zone: None,
        copies: vec![(
            "cache".to_owned(),
            "unix:/run/memcached/memcached.sock".to_owned(),
        )],
    }
}

async fn until(what: &str, is_so: impl Fn() -> bool) -> Duration {
    let begun = Instant::now();
    while !is_so() {
        assert!(
            begun.elapsed() < Duration::from_secs(120),
            "never happened: {what}"
        );
        sleep(Duration::from_millis(2)).await;
    }
    begun.elapsed()
}

#[test]
#[ignore = "it measures for half a minute: make soak"]
fn leader_of_five_hundred_subscribers_grants_all_leases_and_tells_all_of_a_view() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder.path().join("leader"));
    let settings = Settings::new(&config, Vec::new());
    let (fleet, leader) = lead(config);
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        until("the fleet begins", || fleet.node.committed().borrow().fleet != 0).await;
        let identity = fleet.node.committed().borrow().fleet;
        let who = Arc::new(Who::open("subscriber".to_owned(), &folder.path().join("subscriber"), 1).unwrap());
        let mut all = Vec::new();
        for number in 0..SUBSCRIBERS {
            all.push(begin(number, identity, &settings, &who).await);
        }
        let without = resident();
        let join = Change::Join { peers: all.iter().map(|one| peer(one)).collect() };
        fleet.node.propose(join).await.unwrap();
        let roster = fleet.node.committed().borrow().clone();
        for one in &all {
            let links = Links::new(Arc::clone(&who), Arc::new(Security::open(None).unwrap()));
            let stay = roster.view.named(&one.introduction.name).unwrap().stay;
            tokio::spawn(Arc::clone(one).live(fleet.announced.address, links, stay));
        }
        let has_all = |number: u64| all.iter().all(|one| one.heard.load(Relaxed) >= number);
        let is_granted = || all.iter().all(|one| one.grants.load(Relaxed) > 0);
        until("all have a lease", || is_granted() && has_all(roster.view.number)).await;
        let (before, begun) = (processor_time(&leader).await, Instant::now());
        sleep(MEASURED).await;
        let used = processor_time(&leader).await - before;
        let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
        let number = fleet.node.committed().borrow().view.number + 1;
        let stay = roster.view.named("s000").unwrap().stay;
        fleet
            .node
            .propose(Change::Decide { name: "s000".to_owned(), stay, decides: true })
            .await
            .unwrap();
        let took = until("all hear of the view", || has_all(number)).await;
        let peers = fleet.node.committed().borrow().view.peers.len();
        assert!(peers >= SUBSCRIBERS, "{} were left out", SUBSCRIBERS - peers);
        println!(
            "{SUBSCRIBERS} subscribers: leader {:.1} % of a core; {} KB more in the process, subscribers included; a \
             view reached all {took:.1?} after its commit",
            share * 100.0,
            resident().saturating_sub(without),
        );
    });
}
