//! How a round of each table goes, and what it shows.

use anyhow::{Result, bail, ensure};
use rand::rngs::SmallRng;

use super::{
    closed::{self, Request},
    crowd::Crowd,
    driver::{GO, MIXED},
    figure::{Figure, Figures},
    options::Options,
    paced,
    server::Server,
    table::Table,
    way::{DIRECT, OpenWay},
};
use crate::process::{ResourceUsage, Usage, resident_bytes};

/// Clients at a time where requests follow each other.
const AT_ONCE: usize = 16;

/// The proxy that ours is compared with.
const PEER: &str = "haproxy";

/// The server and the way of a round, with the processor time that both have used before it.
struct Watch {
    server: Usage,
    proxy: Option<Usage>,
}

impl Table {
    pub(super) fn title(self, options: &Options) -> String {
        match self {
            Self::Logins => format!("a connection with a login for each point read, {AT_ONCE} at once"),
            Self::Prepares => format!(
                "go-sql-driver's defaults: PREPARE, EXECUTE, CLOSE for each point read, {AT_ONCE} connections"
            ),
            Self::Clients => format!(
                "{} clients of four drivers in six states, each with a point read or update (10 : 1) a \
                 second",
                options.clients
            ),
            Self::Idle => format!("{} idle clients of four drivers in six states", options.idle()),
        }
    }

    pub(super) fn figures(self) -> Vec<Figure> {
        let server = Figure::new("server CPU, µs a request", 1).beside(DIRECT);
        let proxy = Figure::new("proxy CPU, µs a request", 1).beside(PEER);
        match self {
            Self::Logins => vec![
                Figure::new("requests a second", 0),
                server.bar(0.55),
                proxy.bar(0.94),
            ],
            Self::Prepares => vec![Figure::new("requests a second", 0), server.bar(0.58), proxy],
            Self::Clients => vec![
                Figure::new("server connections, logins", 0).bar(64.0),
                Figure::new("server connections, requests", 0).bar(64.0),
                Figure::new("errors", 0).bar(0.0),
                Figure::new("p50, µs", 0).beside(DIRECT),
                Figure::new("p99, µs", 0).beside(DIRECT),
                server,
                proxy,
            ],
            Self::Idle => vec![
                Figure::new("server connections", 0),
                Figure::new("errors", 0).bar(0.0),
                Figure::new("bytes a client, logged in", 0).beside(PEER),
                Figure::new("bytes a client, first statements", 0).beside(PEER),
            ],
        }
    }

    /// Clients that a proxy has at a time.
    pub(super) fn clients(self, options: &Options) -> usize {
        match self {
            Self::Logins | Self::Prepares => AT_ONCE,
            Self::Clients => options.clients,
            Self::Idle => options.idle(),
        }
    }

    /// Whether a way takes part. The memory of a proxy needs one.
    pub(super) fn has(self, way: &str) -> bool {
        self != Self::Idle || way != DIRECT
    }

    /// Makes one round.
    pub(super) fn round(
        self,
        server: &mut Server,
        way: &OpenWay,
        options: &Options,
        random: &mut SmallRng,
    ) -> Result<(Figures, Option<String>)> {
        let clients = self.clients(options);
        match self {
            Self::Logins => {
                let crowd = Crowd::new(way.address, clients, std::slice::from_ref(&GO))?;
                follow(crowd, Request::Login, server, way, options, random)
            }
            Self::Prepares => {
                let mut crowd = Crowd::new(way.address, clients, std::slice::from_ref(&GO))?;
                crowd.log_in()?;
                follow(crowd, Request::Prepare, server, way, options, random)
            }
            Self::Clients => many(server, way, options, random),
            Self::Idle => idle(server, way, options),
        }
    }
}

/// Requests that follow each other, behind some that are not counted.
fn follow(
    mut crowd: Crowd,
    request: Request,
    server: &Server,
    way: &OpenWay,
    options: &Options,
    random: &mut SmallRng,
) -> Result<(Figures, Option<String>)> {
    closed::run(&mut crowd, request, options.duration / 4, random)?;
    let watch = Watch::begin(server, way)?;
    let done = closed::run(&mut crowd, request, options.duration, random)?;
    let (at_server, at_proxy) = watch.end(server, way, done.requests)?;
    crowd.leave();
    let rate = done.requests as f64 / done.took.as_secs_f64();
    Ok((vec![Some(rate), Some(at_server), at_proxy], None))
}

/// Many clients, each of which asks now and then.
fn many(
    server: &mut Server,
    way: &OpenWay,
    options: &Options,
    random: &mut SmallRng,
) -> Result<(Figures, Option<String>)> {
    let before = server.updates()?;
    server.forget_most_connections()?;
    let mut crowd = Crowd::new(way.address, options.clients, &MIXED)?;
    crowd.log_in()?;
    crowd.say_preambles()?;
    let logins = server.most_connections()?;
    server.forget_most_connections()?;
    let watch = Watch::begin(server, way)?;
    let done = paced::run(&mut crowd, options.paced, random)?;
    let (at_server, at_proxy) = watch.end(server, way, done.requests)?;
    let requests = server.most_connections()?;
    let updates = server.updates()? - before;
    // An update without a reply may have been made.
    if crowd.errors == 0 && updates != done.updates {
        bail!("{updates} updates were made, and {} acknowledged", done.updates);
    }
    crowd.leave();
    ensure!(!done.latencies.is_empty(), "no request was answered");
    let quantile = |share| Some(done.latencies.value_at_quantile(share) as f64);
    let figures = vec![
        Some(logins as f64),
        Some(requests as f64),
        Some(crowd.errors as f64),
        quantile(0.5),
        quantile(0.99),
        Some(at_server),
        at_proxy,
    ];
    Ok((figures, crowd.first_error))
}

/// Clients that ask nothing.
fn idle(server: &mut Server, way: &OpenWay, options: &Options) -> Result<(Figures, Option<String>)> {
    let resident = || way.pid().map(resident_bytes).transpose();
    server.forget_most_connections()?;
    let before = resident()?;
    let mut crowd = Crowd::new(way.address, options.idle(), &MIXED)?;
    crowd.log_in()?;
    let logged_in = resident()?;
    crowd.say_preambles()?;
    let said = resident()?;
    let connections = server.most_connections()?;
    crowd.leave();
    let each = |now: Option<u64>| Some((now? as f64 - before? as f64) / options.idle() as f64);
    let figures = vec![
        Some(connections as f64),
        Some(crowd.errors as f64),
        each(logged_in),
        each(said),
    ];
    Ok((figures, crowd.first_error))
}

impl Watch {
    fn begin(server: &Server, way: &OpenWay) -> Result<Self> {
        Ok(Self {
            server: Usage::of(server.pid())?,
            proxy: way.pid().map(Usage::of).transpose()?,
        })
    }

    /// Microseconds of the server, and of the proxy if there is one, for each request since.
    fn end(self, server: &Server, way: &OpenWay, requests: u64) -> Result<(f64, Option<f64>)> {
        let each = |used: ResourceUsage| used.nanoseconds as f64 / 1_000.0 / requests as f64;
        let at_server = Usage::of(server.pid())?.since(&self.server);
        let at_proxy = match (way.pid(), &self.proxy) {
            (Some(pid), Some(before)) => Some(each(Usage::of(pid)?.since(before))),
            _ => None,
        };
        Ok((each(at_server), at_proxy))
    }
}
