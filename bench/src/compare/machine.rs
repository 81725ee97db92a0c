//! Where and when the figures were taken, and by whom.

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
    /// Processors that could be used.
    pub(super) cpus: usize,
    /// Of the repository that this was run in.
    pub(super) revision: Option<String>,
    /// Whoever took part: name and version.
    pub(super) versions: Vec<(String, String)>,
    /// Whoever did not, and why.
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
