//! A row in lockstep: several rounds, each a process of its own that takes all contenders in turn.

use std::{env, fs::File, path::Path};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use super::{
    options::{Entrant, Options},
    rows::{Bar, IDLE_BYTES, Row, Section},
};
use crate::{
    figures::Spread,
    lockstep::{Case, Figures, Report, Subject},
    process::{Child, Launch, Placement, least_busy},
};

/// The result of a row.
#[derive(Serialize, Deserialize)]
pub(super) struct Finding {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) section: Section,
    pub(super) entries: Vec<EntryFinding>,
    pub(super) verdicts: Vec<Verdict>,
}

/// The result of one contender of a row.
#[derive(Serialize, Deserialize)]
pub(super) struct EntryFinding {
    pub(super) label: String,
    /// Results of the rounds, in order. `None`: the round failed.
    pub(super) rounds: Vec<Option<Figures>>,
    /// The first failure, or why it did not take part.
    pub(super) failure: Option<String>,
}

/// Whether a promise holds.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Verdict {
    pub(super) who: String,
    pub(super) against: String,
    /// Ratio of the 10 % quantiles over the rounds. `None`: one of both failed in all rounds.
    pub(super) ratio: Option<Spread>,
    /// Median ratio of bursts that were neighbours in time, over the rounds.
    pub(super) paired: Option<Spread>,
    pub(super) at_most: f64,
    pub(super) holds: bool,
}

impl Row {
    /// Whether any of its contenders was found.
    pub(super) fn runs_with(&self, field: &[Entrant]) -> bool {
        self.entries.iter().any(|entry| {
            field
                .iter()
                .any(|entrant| entrant.contender == entry.contender && entrant.program.is_ok())
        })
    }
}

/// Measures a row. `None` if no contender of the row was found.
pub(super) fn measure(
    row: &Row,
    field: &[Entrant],
    options: &Options,
    directory: &Path,
) -> Result<Option<Finding>> {
    let mut entries = Vec::new();
    let mut cases = Vec::new();
    for entry in &row.entries {
        let Some(entrant) = field.iter().find(|entrant| entrant.contender == entry.contender) else {
            continue;
        };
        let failure = match &entrant.program {
            Ok(program) => {
                let subject = Subject::Start {
                    contender: entry.contender,
                    program: program.clone(),
                };
                cases.push((
                    entries.len(),
                    Case {
                        subject,
                        shape: entry.shape.clone(),
                    },
                ));
                None
            }
            Err(error) => Some(error.to_string()),
        };
        entries.push(EntryFinding {
            label: entry.label.clone(),
            rounds: Vec::new(),
            failure,
        });
    }
    if cases.is_empty() {
        return Ok(None);
    }
    for round in 0..options.rounds() {
        let plan: Vec<&Case> = cases.iter().map(|(_, case)| case).collect();
        let reports = run(&plan, row, round, options, directory);
        for (number, (place, _)) in cases.iter().enumerate() {
            let entry = &mut entries[*place];
            let (figures, failure) = match &reports {
                Ok(reports) => (reports[number].figures.clone(), reports[number].failure.clone()),
                Err(error) => (None, Some(format!("{error:#}"))),
            };
            entry.rounds.push(figures);
            entry.failure = entry.failure.take().or(failure);
        }
    }
    let verdicts = row.bars.iter().filter_map(|bar| judge(bar, &entries)).collect();
    Ok(Some(Finding {
        name: row.name.into(),
        title: row.title.clone(),
        section: row.section,
        entries,
        verdicts,
    }))
}

/// One round.
fn run(plan: &[&Case], row: &Row, round: usize, options: &Options, directory: &Path) -> Result<Vec<Report>> {
    let place = directory.join(format!("{}-{round}", row.name));
    std::fs::create_dir_all(&place)?;
    let (plan_file, report_file) = (place.join("plan.json"), place.join("report.json"));
    crate::output::write_json(&plan_file, &plan)?;
    let cpu = options.cpu.map_or_else(least_busy, Ok)?;
    let mut launch = Launch::new(&env::current_exe()?, ["lockstep", "--cpu", &cpu.to_string()]);
    launch.arguments.extend([
        "--plan".into(),
        plan_file.into(),
        "--json".into(),
        report_file.clone().into(),
    ]);
    launch
        .arguments
        .extend(["--bursts".into(), options.bursts().to_string().into()]);
    launch
        .arguments
        .extend(["--seed".into(), (round + 1).to_string().into()]);
    if round == 0 {
        // Neither result depends on how busy the machine is, so one measurement is enough.
        launch.arguments.extend([
            "--syscalls".into(),
            "--idle-clients".into(),
            row.idle_clients.to_string().into(),
        ]);
    }
    let mut child = Child::start(&launch, &Placement::Inherited, &place)?;
    let ended = child.wait();
    let Ok(report) = File::open(&report_file) else {
        ended?;
        bail!("a lockstep run left no report");
    };
    let reports: Vec<Report> =
        serde_json::from_reader(report).context("a lockstep run left an unreadable report")?;
    ensure!(
        reports.len() == plan.len(),
        "a lockstep run left a report of other cases"
    );
    Ok(reports)
}

/// Compares a promise with the results. `None`: one of both contenders does not take part.
fn judge(bar: &Bar, entries: &[EntryFinding]) -> Option<Verdict> {
    let of = |label: &str| entries.iter().find(|entry| entry.label == label);
    let (who, against) = (of(&bar.who)?, of(&bar.against)?);
    let ratio = who.ratio_to(against);
    let paired = Spread::of(who.rounds_beside(against).filter_map(|(one, other)| {
        let bursts = one.samples_us.iter().zip(&other.samples_us);
        Spread::of(bursts.map(|(one, other)| one / other)).map(|spread| spread.median)
    }));
    Some(Verdict {
        who: bar.who.clone(),
        against: bar.against.clone(),
        ratio,
        paired,
        at_most: bar.at_most,
        holds: ratio.is_some_and(|ratio| ratio.median <= bar.at_most),
    })
}

impl EntryFinding {
    /// The figures of the rounds that did not fail.
    pub(super) fn good(&self) -> impl Iterator<Item = &Figures> {
        self.rounds.iter().flatten()
    }

    /// The rounds in which neither failed.
    fn rounds_beside<'a>(&'a self, other: &'a Self) -> impl Iterator<Item = (&'a Figures, &'a Figures)> {
        let rounds = self.rounds.iter().zip(&other.rounds);
        rounds.filter_map(|(one, other)| Some((one.as_ref()?, other.as_ref()?)))
    }

    /// Its cost as a multiple of `other`'s in the same round.
    pub(super) fn ratio_to(&self, other: &Self) -> Option<Spread> {
        Spread::of(
            self.rounds_beside(other)
                .map(|(one, other)| one.cpu_us.p10 / other.cpu_us.p10),
        )
    }

    /// The 10 % quantiles of the rounds, microseconds per request.
    pub(super) fn cost(&self) -> Option<Spread> {
        Spread::of(self.good().map(|figures| figures.cpu_us.p10))
    }

    /// Growth of memory with idle clients in bytes, and whether it is within the bar.
    pub(super) fn idle_growth(&self) -> Option<(u64, bool)> {
        let idle = self.good().find_map(|figures| figures.idle.as_ref())?;
        let growth = idle
            .connected_bytes
            .max(idle.used_bytes)
            .saturating_sub(idle.before_bytes);
        Some((growth, growth <= IDLE_BYTES))
    }
}
