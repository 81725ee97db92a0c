//! Free-running: real servers under a load that goes as fast as it can, then under one of equal rate for all
//! contenders.
//!
//! These measurements vary with batching and with neighbours. They complement lockstep, and do not replace
//! it.

use std::{env, fs::File, path::Path, time::Instant};

use anyhow::{Context, Result, ensure};
use serde::{Deserialize, Serialize};

use super::options::{Entrant, Options};
use crate::{
    contender::{self, Contender, Distribution, MOST_DEDICATED, Site, Spread},
    load::Report,
    near::Near,
    net::connect,
    process::{Child, Launch, Placement, Usage, allowed, free_port, least_busy, resident_bytes},
    protocol::Protocol,
};

/// Servers behind each proxy. Before MySQL it is one: statements have no key that spreads them, and servers
/// that know nothing of each other are no cluster.
pub(super) const fn server_count(protocol: Protocol) -> usize {
    if protocol.is_mysql() { 1 } else { 4 }
}

/// The share of the greatest rate of twemproxy, or of HAProxy before MySQL, at which all are compared.
const EQUAL_RATE: f64 = 0.6;

/// The name of the run without a proxy.
pub(super) const DIRECT: &str = "direct";

/// One way of running, with everybody's figures.
#[derive(Serialize, Deserialize)]
pub(super) struct FreeFinding {
    /// The placement of the processes.
    pub(super) placement: String,
    /// Requests per second of the open loop. `None`: closed loop.
    pub(super) rate: Option<f64>,
    pub(super) entries: Vec<FreeEntry>,
}

/// One contender's runs.
#[derive(Serialize, Deserialize)]
pub(super) struct FreeEntry {
    pub(super) label: String,
    pub(super) runs: Vec<Run>,
    pub(super) failure: Option<String>,
}

/// One run.
#[derive(Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) report: Report,
    /// Processor time of the proxy per reply, microseconds.
    pub(super) cpu_us: Option<f64>,
    pub(super) resident_bytes: Option<u64>,
}

/// One figure of a run.
pub(super) type Figure = fn(&Run) -> Option<f64>;

/// The processors of the proxy, and of all other processes.
pub(super) struct ProcessorSets {
    pub(super) proxy: Placement,
    pub(super) others: Placement,
}

/// Measures all contenders, pinned and not. `found` gets each finding as it is made.
pub(super) fn measure(
    field: &[Entrant],
    options: &Options,
    directory: &Path,
    mut found: impl FnMut(FreeFinding) -> Result<()>,
) -> Result<()> {
    let place = directory.join("free");
    std::fs::create_dir_all(&place)?;
    for pinned in [true, false] {
        let Some(processor_sets) = processor_sets(pinned, options)? else {
            continue;
        };
        let words = if pinned {
            "the proxy alone on one CPU"
        } else {
            "wherever the kernel puts them"
        };
        eprintln!("free-running, {words}");
        let Some((servers, ports)) =
            servers(server_count(options.protocol), options, &processor_sets, &place)?
        else {
            return Ok(());
        };
        let arena = Arena {
            field,
            options,
            processor_sets: &processor_sets,
            ports: &ports,
            directory: &place,
            connections: 100,
            distribution: Distribution::default(),
            words: &[],
        };
        let closed = arena.run(None)?;
        let greatest = closed
            .iter()
            .find(|entry| entry.label == super::reference(options.protocol).name());
        let greatest = greatest.and_then(|entry| entry.spread(|run| Some(run.report.ops_per_second)));
        found(FreeFinding {
            placement: words.into(),
            rate: None,
            entries: closed,
        })?;
        if let Some(greatest) = greatest {
            let rate = (greatest.median * EQUAL_RATE).round();
            let entries = arena.run(Some(rate))?;
            found(FreeFinding {
                placement: words.into(),
                rate: Some(rate),
                entries,
            })?;
        }
        drop(servers);
    }
    Ok(())
}

/// Starts `count` real servers and stores every key at each. `None` if this machine has none; a message says
/// so.
pub(super) fn servers(
    count: usize,
    options: &Options,
    processor_sets: &ProcessorSets,
    directory: &Path,
) -> Result<Option<(Vec<Child>, Vec<u16>)>> {
    let server = match options.protocol {
        Protocol::Memcached => Contender::Memcached,
        Protocol::Redis => Contender::Redis,
        Protocol::Mysql | Protocol::MysqlPrepared => Contender::Mariadb,
    };
    let Ok(program) = server.program(&[]) else {
        let name = server.name();
        eprintln!("free-running figures need {name}, which is not installed");
        return Ok(None);
    };
    let ports = (0..count).map(|_| free_port()).collect::<Result<Vec<u16>>>()?;
    let start = |port: &u16| {
        let launch = match options.protocol {
            Protocol::Memcached => contender::memcached(&program, *port),
            Protocol::Redis => contender::redis(&program, *port),
            Protocol::Mysql | Protocol::MysqlPrepared => contender::mariadb(&program, *port, directory)?,
        };
        Child::start(&launch, &processor_sets.others, directory)
    };
    let servers = ports.iter().map(start).collect::<Result<_>>()?;
    ports.iter().try_for_each(|port| wait_for(*port))?;
    let fill = [
        "--fill",
        "--duration",
        "0s",
        "--protocol",
        options.protocol.name(),
    ];
    load(&fill, &ports, processor_sets, directory)?;
    Ok(Some((servers, ports)))
}

/// Processors for a pinned run: one for the proxy and another one for the rest.
pub(super) fn processor_sets(pinned: bool, options: &Options) -> Result<Option<ProcessorSets>> {
    let cpus = allowed()?;
    if !pinned {
        return Ok(Some(ProcessorSets {
            proxy: Placement::On(cpus.clone()),
            others: Placement::On(cpus),
        }));
    }
    let proxy = options.cpu.map_or_else(least_busy, Ok)?;
    let others: Vec<usize> = cpus.into_iter().filter(|cpu| *cpu != proxy).collect();
    let processor_sets = ProcessorSets {
        proxy: Placement::On(vec![proxy]),
        others: Placement::On(others.clone()),
    };
    Ok((!others.is_empty()).then_some(processor_sets))
}

/// The environment of one run.
pub(super) struct Arena<'a> {
    pub(super) field: &'a [Entrant],
    pub(super) options: &'a Options,
    pub(super) processor_sets: &'a ProcessorSets,
    pub(super) ports: &'a [u16],
    pub(super) directory: &'a Path,
    /// Connections of the load.
    pub(super) connections: usize,
    /// The distribution of those that read twemproxy's file.
    pub(super) distribution: Distribution,
    /// Further words of the load's command line.
    pub(super) words: &'a [&'a str],
}

impl Arena<'_> {
    /// Runs all contenders in turn, in several rounds.
    pub(super) fn run(&self, rate: Option<f64>) -> Result<Vec<FreeEntry>> {
        let direct = (DIRECT.to_owned(), None);
        let proxies = self
            .present()
            .into_iter()
            .map(|(contender, program)| (contender.name().to_owned(), Some((contender, program))));
        self.rounds(std::iter::once(direct).chain(proxies), |path| match path {
            None => self.direct(rate),
            Some((contender, program)) => self.through(*contender, program, rate),
        })
    }

    /// Runs all contenders in turn, alone and in two behind HAProxy, in several rounds.
    pub(super) fn run_balanced(&self) -> Result<Vec<FreeEntry>> {
        let balancer = Contender::Haproxy.program(&[]);
        let mut paths = vec![(DIRECT.to_owned(), None)];
        for (contender, program) in self.present() {
            if contender == Contender::Haproxy {
                continue;
            }
            let name = contender.name();
            paths.push((name.to_owned(), Some((contender, program, None))));
            if let Ok(balancer) = &balancer {
                let path = Some((contender, program, Some(balancer)));
                paths.push((format!("{name}, balanced"), path));
            }
        }
        self.rounds(paths, |path| match path {
            None => self.direct(None),
            Some((contender, program, None)) => self.through(*contender, program, None),
            Some((contender, program, Some(balancer))) => self.through_two(*contender, program, balancer),
        })
    }

    /// The proxies that are there and take as many clients as the load has.
    fn present(&self) -> Vec<(Contender, &Path)> {
        self.field
            .iter()
            .filter(|entrant| !entrant.contender.is_server())
            .filter(|entrant| entrant.contender.most_clients() >= self.connections)
            .filter_map(|entrant| Some((entrant.contender, entrant.program.as_deref().ok()?)))
            .collect()
    }

    /// Lets `run` take each path in turn, in several rounds.
    fn rounds<P>(
        &self,
        paths: impl IntoIterator<Item = (String, P)>,
        run: impl Fn(&P) -> Result<Run>,
    ) -> Result<Vec<FreeEntry>> {
        let (labels, paths): (Vec<String>, Vec<P>) = paths.into_iter().unzip();
        let mut entries: Vec<FreeEntry> = labels
            .into_iter()
            .map(|label| FreeEntry {
                label,
                runs: Vec::new(),
                failure: None,
            })
            .collect();
        for _ in 0..self.options.rounds() {
            for (path, entry) in paths.iter().zip(&mut entries) {
                match run(path) {
                    Ok(run) => entry.runs.push(run),
                    Err(error) => _ = entry.failure.get_or_insert(format!("{error:#}")),
                }
            }
        }
        Ok(entries)
    }

    fn direct(&self, rate: Option<f64>) -> Result<Run> {
        Ok(Run {
            report: self.load(self.ports, rate)?,
            cpu_us: None,
            resident_bytes: None,
        })
    }

    fn through(&self, contender: Contender, program: &Path, rate: Option<f64>) -> Result<Run> {
        self.with_proxy((contender, program), self.ports, |port, pid| {
            self.judged(port, &[pid], rate)
        })
    }

    /// Two of a contender share what a balancer gets.
    fn through_two(&self, contender: Contender, program: &Path, balancer: &Path) -> Result<Run> {
        self.with_proxy((contender, program), self.ports, |one, first| {
            self.with_proxy((contender, program), self.ports, |other, second| {
                let balancer = (Contender::Haproxy, balancer);
                self.with_proxy(balancer, &[one, other], |port, _| {
                    self.judged(port, &[first, second], None)
                })
            })
        })
    }

    /// Loads this port, and counts what these processes take of the processor for it.
    fn judged(&self, port: u16, pids: &[u32], rate: Option<f64>) -> Result<Run> {
        let usages = || {
            pids.iter()
                .map(|pid| Usage::of(*pid))
                .collect::<Result<Vec<Usage>>>()
        };
        let before = usages()?;
        let report = self.load(&[port], rate)?;
        let used = usages()?
            .iter()
            .zip(&before)
            .map(|(after, before)| after.since(before).nanoseconds)
            .sum::<u64>();
        let cpu_us = used as f64 / 1_000.0 / report.replies as f64;
        let resident = pids.iter().map(|pid| resident_bytes(*pid)).sum::<Result<u64>>()?;
        Ok(Run {
            report,
            cpu_us: Some(cpu_us),
            resident_bytes: Some(resident),
        })
    }

    /// Lets `ask` use the port of a contender that runs meanwhile.
    pub(super) fn behind<T>(
        &self,
        contender: Contender,
        program: &Path,
        ask: impl FnOnce(u16) -> Result<T>,
    ) -> Result<T> {
        self.with_proxy((contender, program), self.ports, |port, _| ask(port))
    }

    /// Starts a contender before `servers` and lets `act` use its port and its process. It must still run
    /// afterwards.
    fn with_proxy<T>(
        &self,
        (contender, program): (Contender, &Path),
        servers: &[u16],
        act: impl FnOnce(u16, u32) -> Result<T>,
    ) -> Result<T> {
        let port = free_port()?;
        let place = tempfile::tempdir_in(self.directory)?;
        let site = Site {
            directory: place.path(),
            port,
            servers,
            spread: Spread::Hash,
            distribution: self.distribution,
            protocol: self.options.protocol,
            // No stand-in answers here: the servers have their own values.
            value_size: 0,
            near: Near::None,
            galera: false,
            dedicated: Some(MOST_DEDICATED),
            most_clients: contender.most_clients(),
            tls: None,
        };
        let launch = contender.launch(program, &site)?;
        let mut proxy = Child::start(&launch, &self.processor_sets.proxy, place.path())?;
        wait_for(port).map_err(|error| proxy.check_running().err().unwrap_or(error))?;
        let result = act(port, proxy.pid())?;
        proxy.check_running()?;
        Ok(result)
    }

    fn load(&self, ports: &[u16], rate: Option<f64>) -> Result<Report> {
        let duration = format!("{}s", self.options.run().as_secs());
        let protocol = self.options.protocol.name().to_owned();
        let connections = self.connections.to_string();
        let mut words = vec!["--duration".to_owned(), duration, "--protocol".into(), protocol];
        words.extend(["--connections".into(), connections]);
        if let Some(rate) = rate {
            words.extend(["--rate".into(), rate.to_string()]);
            if !self.options.protocol.is_mysql() {
                // Room for a backlog: requests leave at their time even while older ones wait.
                words.extend(["--pipeline".into(), "64".into()]);
            }
        }
        let words: Vec<&str> = words
            .iter()
            .map(String::as_str)
            .chain(self.words.iter().copied())
            .collect();
        load(&words, ports, self.processor_sets, self.directory)?;
        let report = File::open(self.directory.join("load.json")).context("the load left no report")?;
        let report: Report = serde_json::from_reader(report)?;
        ensure!(report.wrong == 0, "{} replies had wrong bytes", report.wrong);
        ensure!(report.replies > 0, "no request was answered");
        Ok(report)
    }
}

/// Runs the load generator against `ports` to its end.
fn load(words: &[&str], ports: &[u16], processor_sets: &ProcessorSets, directory: &Path) -> Result<()> {
    let report = directory.join("load.json");
    let _ = std::fs::remove_file(&report);
    let addresses: Vec<String> = ports.iter().map(|port| format!("127.0.0.1:{port}")).collect();
    let mut launch = Launch::new(
        &env::current_exe()?,
        ["load", "--quiet", "--address", &addresses.join(",")],
    );
    launch.arguments.extend(words.iter().map(Into::into));
    launch.arguments.extend(["--json".into(), report.into()]);
    Child::start(&launch, &processor_sets.others, directory)?.wait()
}

/// Waits until somebody accepts connections on `port`.
fn wait_for(port: u16) -> Result<()> {
    let deadline = Instant::now() + std::time::Duration::from_secs(5);
    loop {
        match connect(([127, 0, 0, 1], port).into()) {
            Ok(_) => return Ok(()),
            Err(error) if Instant::now() > deadline => return Err(error),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    }
}

impl FreeEntry {
    /// The spread of one figure over the runs.
    pub(super) fn spread(&self, figure: impl Fn(&Run) -> Option<f64>) -> Option<crate::figures::Spread> {
        crate::figures::Spread::of(self.runs.iter().filter_map(figure))
    }
}
