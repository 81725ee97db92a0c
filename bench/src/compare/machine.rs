//! The machine, the time and the versions of a measurement.

use std::{fs, process::Command};

use serde::{Deserialize, Serialize};

use super::options::Entrant;
use crate::process::allowed;

/// The heading of the results.
#[derive(Serialize, Deserialize)]
pub(super) struct Machine {
    /// Local time, as in `2026-11-22 14:05`.
    pub(super) date: String,
    pub(super) kernel: String,
    pub(super) cpu: String,
    /// The number of usable processors.
    pub(super) cpus: usize,
    /// The revision of the repository in which it ran.
    pub(super) revision: Option<String>,
    /// The contenders that took part, with their versions.
    pub(super) versions: Vec<(String, String)>,
    /// The contenders that did not, with the reasons.
    pub(super) absent: Vec<(String, String)>,
}

impl Machine {
    pub(super) fn look(field: &[Entrant]) -> Self {
        let (mut versions, mut absent) = (Vec::new(), Vec::new());
        for entrant in field {
            let name = entrant.contender.name().to_owned();
            match &entrant.program {
                Ok(program) => versions.push((name, entrant.contender.version(program))),
                Err(error) => absent.push((name, error.to_string())),
            }
        }
        let read = |file: &str| fs::read_to_string(file).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo
            .lines()
            .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Self {
            date: jiff::Zoned::now().strftime("%Y-%m-%d %H:%M").to_string(),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            cpu: model.map_or_else(|| std::env::consts::ARCH.to_owned(), |(_, name)| name.to_owned()),
            cpus: allowed().map_or(0, |cpus| cpus.len()),
            revision: revision(),
            versions,
            absent,
        }
    }
}

fn revision() -> Option<String> {
    let output = Command::new("git")
        .args(["describe", "--always", "--dirty"])
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}
