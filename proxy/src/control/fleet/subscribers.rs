//! What many peers cost their leader: a measurement. The peers are simulated as far as a leader knows them:
//! each listens, answers probes, sends heartbeats, and hears of views.

#![allow(clippy::unwrap_used)]

use std::{
    env, fs,
    io::{BufRead, BufReader, Lines, Write, stdin},
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, ChildStdout, Command, Stdio},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    thread,
    time::{Duration, Instant},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    runtime::{Builder, Handle},
    sync::mpsc,
    time::sleep,
};

use super::{
    Fleet, Settings,
    identity::OwnIdentity,
    link::{Accept, Hello, Stream, listen, packet},
    links::Links,
    message::{Introduction, Message, Reply},
    now,
    raft::Consensus,
    security::Security,
};
use crate::{
    config::schema::{self, FleetPeers, Peers, Role},
    control::surroundings::dns::Names,
    fleet::{Change, Difference, Heartbeat, Peer, Roster, Stay},
    random::Random,
    tls::Certificates,
};

const SUBSCRIBERS: usize = 500;
/// Interval between two heartbeats of a subscriber: that of a lease of a second.
const BEAT: Duration = Duration::from_millis(200);
/// Heartbeats for one probe of each peer, as in `begin`.
const PROBE: usize = SUBSCRIBERS / 50;
const LEASE: Duration = Duration::from_mins(1);
/// The time that is measured.
const MEASURED: Duration = Duration::from_secs(10);
/// The test starts its own program once more, for the leader: with this variable, the leader's directory.
const DIR: &str = "PROXIMA_TEST_LEADER";
const NAME: &str = "control::fleet::subscribers::leader_of_five_hundred_subscribers_grants_all_leases_and_tells_all_of_a_view";
/// Before each answer of the leader, which the test runner's own lines have not.
const LEADS: &str = "leader: ";

struct Subscriber {
    introduction: Introduction,
    address: SocketAddr,
    roster: Mutex<Roster>,
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
                    Message::Difference(difference) => {
                        self.hear(&difference);
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

    /// Hears of a view, if it knows the one before it.
    fn hear(&self, difference: &Difference) {
        let mut roster = self.roster.lock().unwrap();
        if let Some(next) = roster.follow(difference) {
            *roster = next;
            self.heard.store(roster.view.number, Relaxed);
        }
    }

    /// Sends heartbeats for ever, and probes as often as a peer of so many does.
    async fn live(self: Arc<Self>, leader: SocketAddr, links: Links, stay: Stay) {
        for round in 0.. {
            let heard = self.heard.load(Relaxed);
            if round % PROBE == 0 {
                let _ = links.ask(leader, Message::Probe, BEAT).await;
            }
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
                    self.heard.store(roster.view.number, Relaxed);
                    *self.roster.lock().unwrap() = roster;
                }
            }
            sleep(BEAT).await;
        }
    }
}

fn config(dir: &Path) -> schema::Fleet {
    schema::Fleet {
        listen: "127.0.0.1:0".to_owned(),
        announce: None,
        peers: FleetPeers::At(Peers::Listed(Vec::new())),
        name: Some("leader".to_owned()),
        dir: dir.to_owned(),
        // Subscribers do not vote.
        voters: Some(vec!["leader".to_owned()]),
        expect: 1,
        role: Role::Peer,
        // Nobody is to be left out while all of them begin, which costs the subscribers much.
        lease: LEASE,
        suspect: Duration::from_secs(5),
        tls: None,
    }
}

/// The leader's process: it makes each change that a line of its input names, and answers with the roster.
fn lead(dir: &Path) {
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (fleet, _peering) = Fleet::start(
            config(dir),
            Random(1),
            (1, None),
            (Vec::new(), Vec::new()),
            (
                &Certificates::default(),
                &Arc::new(Names::offline(Handle::current())),
            ),
        )
        .await
        .unwrap();
        let mut committed = fleet.node.committed();
        committed.wait_for(|roster| roster.fleet != 0).await.unwrap();
        println!("{LEADS}{}", fleet.announced.address);
        let (tell, mut lines) = mpsc::unbounded_channel();
        thread::spawn(move || stdin().lines().try_for_each(|line| tell.send(line.unwrap())));
        while let Some(line) = lines.recv().await {
            let change: Option<Change> = serde_json::from_str(&line).unwrap();
            if let Some(change) = change {
                fleet.node.propose(change).await.unwrap();
            }
            let roster = fleet.node.committed().borrow().clone();
            println!("{LEADS}{}", serde_json::to_string(&roster).unwrap());
        }
    });
}

/// The leader, as its process is seen from outside.
struct Leader {
    process: Child,
    answers: Lines<BufReader<ChildStdout>>,
    address: SocketAddr,
}

impl Leader {
    fn start(dir: &Path) -> Self {
        let mut process = Command::new(env::current_exe().unwrap())
            .args([NAME, "--exact", "--ignored", "--nocapture"])
            .env(DIR, dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut answers = BufReader::new(process.stdout.take().unwrap()).lines();
        let address = said(&mut answers).parse().unwrap();
        Self {
            process,
            answers,
            address,
        }
    }

    /// Has the leader make this change, if any. Returns the roster.
    fn ask(&mut self, change: Option<Change>) -> Roster {
        let line = serde_json::to_string(&change).unwrap() + "\n";
        let input = self.process.stdin.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        serde_json::from_str(&said(&mut self.answers)).unwrap()
    }

    /// What a file of the kernel says of the process.
    fn proc(&self, file: &str) -> String {
        fs::read_to_string(format!("/proc/{}/{file}", self.process.id())).unwrap()
    }

    /// Processor time, in nanoseconds, from the first field of `schedstat` of each thread.
    fn processor_time(&self) -> Duration {
        let tasks = fs::read_dir(format!("/proc/{}/task", self.process.id())).unwrap();
        let of = |task: PathBuf| -> u64 {
            let text = fs::read_to_string(task.join("schedstat")).unwrap_or_default();
            text.split_whitespace()
                .next()
                .map_or(0, |time| time.parse().unwrap())
        };
        Duration::from_nanos(tasks.map(|task| of(task.unwrap().path())).sum())
    }

    /// Kilobytes of memory.
    fn resident(&self) -> u64 {
        let status = self.proc("status");
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    }
}

/// What the leader says next.
fn said(answers: &mut Lines<BufReader<ChildStdout>>) -> String {
    for line in answers.map(Result::unwrap) {
        if let Some((_, text)) = line.split_once(LEADS) {
            return text.to_owned();
        }
    }
    panic!("the leader has ended");
}

async fn begin(number: usize, fleet: u128, settings: &Settings, who: &Arc<OwnIdentity>) -> Arc<Subscriber> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let name = format!("s{number:03}");
    let subscriber = Arc::new(Subscriber {
        introduction: Introduction {
            name: name.clone(),
            identity: number as u128 + 1,
            fleet: Some(fleet),
            lowest: name,
            leader: None,
            term: 0,
            votes_for_nobody: false,
            witness: false,
            time: 0,
            settings: settings.clone(),
            round_trips: Default::default(),
        },
        address: listener.local_addr().unwrap(),
        roster: Mutex::default(),
        heard: AtomicU64::new(0),
        grants: AtomicU64::new(0),
    });
    let security = Arc::new(Security::default());
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
        identity: subscriber.introduction.identity,
        address: subscriber.address,
        lease: LEASE.as_micros() as u64,
        copies: vec![(
            "cache".to_owned(),
            "unix:/run/memcached/memcached.sock".to_owned(),
        )],
        ..Peer::example(&subscriber.introduction.name)
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
    if let Some(dir) = env::var_os(DIR) {
        return lead(Path::new(&dir));
    }
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("leader");
    let settings = Settings::new(&config(&dir), Vec::new());
    let runtime = Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut leader = Leader::start(&dir);
        let identity = leader.ask(None).fleet;
        let directory = folder.path().join("subscriber");
        let who = Arc::new(OwnIdentity::open("subscriber".to_owned(), &directory, 1).unwrap());
        let mut all = Vec::new();
        for number in 0..SUBSCRIBERS {
            all.push(begin(number, identity, &settings, &who).await);
        }
        let without = leader.resident();
        let join = Change::Join { peers: all.iter().map(|one| peer(one)).collect() };
        let roster = leader.ask(Some(join));
        let stay = roster.view.named("s000").unwrap().stay;
        for one in &all {
            let links = Links::new(Arc::clone(&who), Arc::new(Security::default()));
            tokio::spawn(Arc::clone(one).live(leader.address, links, stay));
        }
        let has_all = |number: u64| all.iter().all(|one| one.heard.load(Relaxed) >= number);
        let is_granted = || all.iter().all(|one| one.grants.load(Relaxed) > 0);
        until("all have a lease", || is_granted() && has_all(roster.view.number)).await;
        let (before, begun) = (leader.processor_time(), Instant::now());
        sleep(MEASURED).await;
        let used = leader.processor_time() - before;
        let share = used.as_secs_f64() / begun.elapsed().as_secs_f64();
        let memory = leader.resident().saturating_sub(without);
        let change = Change::Decide { name: "s000".to_owned(), stay, decides: true };
        let number = leader.ask(None).view.number + 1;
        let asked = Instant::now();
        leader.ask(Some(change));
        until("all hear of the view", || has_all(number)).await;
        let took = asked.elapsed();
        let peers = leader.ask(None).view.peers.len();
        assert!(peers >= SUBSCRIBERS, "{} were left out", SUBSCRIBERS - peers);
        println!(
            "{SUBSCRIBERS} subscribers: leader {:.1} % of a core and {memory} KB more; a view reached all {took:.1?} \
             after it was proposed",
            share * 100.0,
        );
    });
}
