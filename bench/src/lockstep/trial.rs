//! One case under measurement: its process, its clients, its samples.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::{
    options::{Case, Settings},
    report::{Figures, Idle, Report},
    rounds::Rounds,
    target::Target,
};
use crate::{
    figures::Spread,
    fill::fill,
    form::Check,
    process::{SyscallTrace, Usage, raise_descriptor_limit, resident_bytes},
    workload::Keys,
};

/// Requests of the warm-up; more where there are more servers to get to know.
const WARM_UP: usize = 4_000;

/// A burst's first rounds, one in this many, are not measured: they bring the caches back from the case
/// before.
const LEAD_IN: usize = 10;

/// A case and how far it has come; after its first failure it rests.
pub(super) struct Trial<'a> {
    case: &'a Case,
    outcome: Result<RunningCase>,
}

struct RunningCase {
    rounds: Rounds,
    // It stands after the clients, which hang up before the process is ended.
    target: Target,
    directory: PathBuf,
    rounds_a_burst: usize,
    measured: TrialResults,
}

/// The results so far.
#[derive(Default)]
struct TrialResults {
    samples: Vec<f64>,
    waits: u64,
    preemptions: u64,
    own_preemptions: u64,
    resident_bytes: u64,
    syscalls_per_request: Option<f64>,
    idle: Option<Idle>,
}

impl<'a> Trial<'a> {
    /// Starts the process, connects the clients, fills a server, and warms up.
    pub(super) fn start(case: &'a Case, settings: &Settings, cpu: usize, directory: PathBuf) -> Self {
        Self {
            case,
            outcome: RunningCase::start(case, settings, cpu, directory),
        }
    }

    /// Measures one burst.
    pub(super) fn burst(&mut self) {
        self.attempt(RunningCase::burst);
    }

    /// Measures what is found out once, after all bursts: memory, system calls, idle clients. Then checks
    /// every byte once more.
    pub(super) fn afterwards(&mut self, settings: &Settings) {
        let case = self.case;
        self.attempt(|running| running.afterwards(case, settings));
    }

    /// The figures, or why there are none.
    pub(super) fn report(self, cpu: usize) -> Report {
        let (figures, failure) = match self.outcome.and_then(RunningCase::figures) {
            Ok(figures) => (Some(figures), None),
            Err(error) => (None, Some(format!("{error:#}"))),
        };
        Report {
            target: self.case.name(),
            shape: self.case.effective_shape(),
            cpu,
            figures,
            failure,
        }
    }

    fn attempt(&mut self, step: impl FnOnce(&mut RunningCase) -> Result<()>) {
        if let Ok(running) = &mut self.outcome
            && let Err(error) = step(running)
        {
            // A process that has ended explains more than the connection that broke with it.
            self.outcome = Err(running.target.check_running().err().unwrap_or(error));
        }
    }
}

impl RunningCase {
    fn start(case: &Case, settings: &Settings, cpu: usize, directory: PathBuf) -> Result<Self> {
        let shape = &case.shape;
        shape.check(settings.burst_requests, settings.bursts)?;
        let mut target = Target::start(case, cpu, &directory)?;
        let keys = Keys::new(shape.keys, shape.key_size)?;
        if target.backends.is_none() {
            fill(shape.protocol, target.address, &keys, shape.value_size)?;
        }
        let mut rounds = Rounds::connect(shape, keys.into(), &mut target, settings.seed)?;
        rounds.keep_all(&mut target)?;
        let warm_up = WARM_UP.max(20 * shape.servers).div_ceil(rounds.batch()).max(20);
        rounds.run(warm_up, Check::Whole, &mut target)?;
        let rounds_a_burst = shape.rounds(settings.burst_requests);
        Ok(Self {
            rounds,
            target,
            directory,
            rounds_a_burst,
            measured: TrialResults::default(),
        })
    }

    fn burst(&mut self) -> Result<()> {
        let (pid, me) = (self.target.pid(), std::process::id());
        self.rounds.run(
            self.rounds_a_burst.div_ceil(LEAD_IN),
            Check::Framing,
            &mut self.target,
        )?;
        if self.rounds.writes_kept() {
            self.rounds.keep_all(&mut self.target)?;
        }
        let (before, own_before) = (Usage::of(pid)?, Usage::of(me)?);
        self.rounds
            .run(self.rounds_a_burst, Check::Framing, &mut self.target)?;
        let used = Usage::of(pid)?.since(&before);
        let own = Usage::of(me)?.since(&own_before);
        self.measured
            .samples
            .push(used.nanoseconds as f64 / 1_000.0 / self.requests_a_burst() as f64);
        self.measured.waits += used.waits;
        self.measured.preemptions += used.preemptions;
        self.measured.own_preemptions += own.preemptions;
        Ok(())
    }

    fn requests_a_burst(&self) -> usize {
        self.rounds_a_burst * self.rounds.batch()
    }

    fn afterwards(&mut self, case: &Case, settings: &Settings) -> Result<()> {
        self.rounds.run(2, Check::Whole, &mut self.target)?;
        let pid = self.target.pid();
        self.measured.resident_bytes = resident_bytes(pid)?;
        if settings.syscalls
            && let Some(trace) = SyscallTrace::attach(pid, &self.directory)?
        {
            self.rounds
                .run(self.rounds_a_burst, Check::Framing, &mut self.target)?;
            self.measured.syscalls_per_request =
                Some(trace.finish()? as f64 / self.requests_a_burst() as f64);
        }
        if settings.idle_clients > 0 {
            self.measured.idle = Some(self.idle(case, settings)?);
        }
        Ok(())
    }

    /// Measures the memory that connected clients without requests cost.
    fn idle(&mut self, case: &Case, settings: &Settings) -> Result<Idle> {
        /// Clients that are ready at once when each makes its one request.
        const GROUP: usize = 100;
        let (count, limit) = (settings.idle_clients, raise_descriptor_limit());
        let needed = count as u64 + 200;
        ensure!(
            limit >= needed,
            "{needed} open files are needed, {limit} are allowed (ulimit -n)"
        );
        let pid = self.target.pid();
        let before_bytes = settled(pid)?;
        let mut groups = Vec::new();
        for start in (0..count).step_by(GROUP) {
            let shape = super::Shape {
                clients: GROUP.min(count - start),
                pipeline: 1,
                keys_a_request: 1,
                ..case.shape.clone()
            };
            groups.push(Rounds::connect(
                &shape,
                self.rounds.keys(),
                &mut self.target,
                settings.seed,
            )?);
        }
        let connected_bytes = settled(pid)?;
        for group in &mut groups {
            group.run(1, Check::Whole, &mut self.target)?;
        }
        Ok(Idle {
            clients: count,
            before_bytes,
            connected_bytes,
            used_bytes: settled(pid)?,
        })
    }

    fn figures(self) -> Result<Figures> {
        let requests_a_burst = self.requests_a_burst();
        let TrialResults {
            samples,
            waits,
            preemptions,
            own_preemptions,
            ..
        } = self.measured;
        let rounds = (self.rounds_a_burst * samples.len()) as f64;
        Ok(Figures {
            requests_a_burst,
            cpu_us: Spread::of(samples.iter().copied()).context("no burst was made")?,
            samples_us: samples,
            wakeups_a_round: waits as f64 / rounds,
            preemptions_a_round: preemptions as f64 / rounds,
            own_preemptions_a_round: own_preemptions as f64 / rounds,
            resident_bytes: self.measured.resident_bytes,
            syscalls_per_request: self.measured.syscalls_per_request,
            idle: self.measured.idle,
        })
    }
}

/// Resident memory after time to accept, to free and to return.
fn settled(pid: u32) -> Result<u64> {
    std::thread::sleep(std::time::Duration::from_millis(500));
    resident_bytes(pid)
}
