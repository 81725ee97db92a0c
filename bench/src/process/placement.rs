//! Where a process runs and how it is scheduled, by util-linux's `taskset` and `chrt`.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::cpus;

/// `SCHED_BATCH` in `/proc/PID/stat`.
const SCHED_BATCH: &str = "3";

/// Processors and scheduling of a process to be started.
#[derive(Clone, Debug, Default)]
pub(crate) struct Placement {
    /// Processors it may use; none = all.
    pub(crate) cpus: Vec<usize>,
    /// Under SCHED_BATCH: waking it does not interrupt whoever runs.
    pub(crate) batch: bool,
}

impl Placement {
    /// The commands that come before the program's own; each replaces itself by the next.
    pub(crate) fn prefix(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.cpus.is_empty() {
            let list: Vec<String> = self.cpus.iter().map(usize::to_string).collect();
            words.extend(["taskset".into(), "-c".into(), list.join(",")]);
        }
        if self.batch {
            words.extend(["chrt", "-b", "0"].map(String::from));
        }
        words
    }
}

/// Makes this process one that runs on `cpu` alone under SCHED_BATCH, by starting itself anew with the same
/// arguments where it is not one yet. Must be called before anything was done.
pub(crate) fn become_batch_on(cpu: usize) -> Result<()> {
    if cpus::allowed()? == [cpu] && own_policy()? == SCHED_BATCH {
        return Ok(());
    }
    ensure!(cpus::allowed()?.contains(&cpu), "processor {cpu} is not among those this process may use");
    let prefix = Placement { cpus: vec![cpu], batch: true }.prefix();
    let mut arguments = env::args_os();
    let called_as = arguments.next();
    let mut command = Command::new(&prefix[0]);
    command.args(&prefix[1..]).arg(env::current_exe()?).args(arguments);
    let error = command.exec();
    Err(error).with_context(|| format!("cannot run {called_as:?} under {} (package util-linux)", prefix.join(" ")))
}

/// Moves a process that runs already, every thread of it, to `cpu` and SCHED_BATCH.
pub(crate) fn move_to(cpu: usize, pid: u32) -> Result<()> {
    let (cpu, pid) = (cpu.to_string(), pid.to_string());
    for words in [["taskset", "-a", "-c", "-p", &cpu, &pid], ["chrt", "-a", "-b", "-p", "0", &pid]] {
        let status = Command::new(words[0]).args(&words[1..]).stdout(Stdio::null()).status();
        let status = status.with_context(|| format!("cannot start '{}' (package util-linux)", words[0]))?;
        ensure!(status.success(), "'{}' failed; may this user move process {pid}?", words.join(" "));
    }
    Ok(())
}

/// The scheduling policy of this process, as `/proc/self/stat` writes it.
fn own_policy() -> Result<String> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field, the name, may hold spaces; it ends at the last parenthesis. The policy is field 41.
    let after_name = stat.rsplit_once(')').context("unexpected /proc/self/stat")?.1;
    let policy = after_name.split_whitespace().nth(41 - 3).context("/proc/self/stat has no policy")?;
    Ok(policy.to_owned())
}
