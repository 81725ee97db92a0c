//! The processors and the scheduling of a process, by util-linux's `taskset` and `chrt`.

use std::{
    env, fs,
    os::unix::process::CommandExt,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};

use super::cpus;

/// `SCHED_BATCH` in `/proc/PID/stat`.
const SCHED_BATCH: &str = "3";

/// A priority, as `nice` counts, that the scheduler weighs a tenth of the usual one.
///
/// It is low enough that a proxy that has used a fair share of the processor gets no turn while a thousand
/// clients write, and not so low that a machine busy with other work starves it.
const LOW: &str = "10";

/// The processors on which a started process may run.
#[derive(Clone, Debug)]
pub(crate) enum Placement {
    /// On the processors of this process.
    Inherited,
    /// On these processors.
    On(Vec<usize>),
    /// On this processor, after this process: under SCHED_BATCH its wake-up interrupts no other process, and
    /// at a low priority it hardly runs while this process is ready.
    Behind(usize),
}

impl Placement {
    /// The commands that come before the program's own; each replaces itself by the next.
    pub(crate) fn prefix(&self) -> Vec<String> {
        match self {
            Self::Inherited => Vec::new(),
            Self::On(cpus) => {
                let list: Vec<String> = cpus.iter().map(usize::to_string).collect();
                ["taskset", "-c", &list.join(",")].map(String::from).to_vec()
            }
            Self::Behind(cpu) => {
                let mut words = batch_on(*cpu).to_vec();
                words.extend(["nice", "-n", LOW].map(String::from));
                words
            }
        }
    }
}

fn batch_on(cpu: usize) -> [String; 6] {
    ["taskset", "-c", &cpu.to_string(), "chrt", "-b", "0"].map(String::from)
}

/// Makes this process one that runs on `cpu` alone under SCHED_BATCH, by starting itself anew with the same
/// arguments where it is not one yet. Must be called before anything was done.
pub(crate) fn become_batch_on(cpu: usize) -> Result<()> {
    if cpus::allowed()? == [cpu] && own_policy()? == SCHED_BATCH {
        return Ok(());
    }
    ensure!(
        cpus::allowed()?.contains(&cpu),
        "processor {cpu} is not among those this process may use"
    );
    let prefix = batch_on(cpu);
    let mut arguments = env::args_os();
    let called_as = arguments.next();
    let mut command = Command::new(&prefix[0]);
    command
        .args(&prefix[1..])
        .arg(env::current_exe()?)
        .args(arguments);
    let error = command.exec();
    Err(error).with_context(|| {
        format!(
            "cannot run {called_as:?} under {} (package util-linux)",
            prefix.join(" ")
        )
    })
}

/// Moves a process that runs already, every thread of it, to `cpu`, SCHED_BATCH and a low priority.
pub(crate) fn move_to(cpu: usize, pid: u32) -> Result<()> {
    run(&["taskset", "-a", "-c", "-p", &cpu.to_string(), &pid.to_string()])?;
    run(&["chrt", "-a", "-b", "-p", "0", &pid.to_string()])?;
    // A priority is a thread's own; a thread may have ended since it was listed.
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let _ = run(&["renice", "-n", LOW, "-p", &thread?.file_name().to_string_lossy()]);
    }
    Ok(())
}

fn run(words: &[&str]) -> Result<()> {
    let status = Command::new(words[0])
        .args(&words[1..])
        .stdout(Stdio::null())
        .status();
    let status = status.with_context(|| format!("cannot start '{}' (package util-linux)", words[0]))?;
    ensure!(
        status.success(),
        "'{}' failed; may this user do it?",
        words.join(" ")
    );
    Ok(())
}

/// The scheduling policy of this process, as `/proc/self/stat` writes it.
fn own_policy() -> Result<String> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    // The second field, the name, may hold spaces; it ends at the last parenthesis. The policy is field 41.
    let after_name = stat.rsplit_once(')').context("unexpected /proc/self/stat")?.1;
    let policy = after_name
        .split_whitespace()
        .nth(41 - 3)
        .context("/proc/self/stat has no policy")?;
    Ok(policy.to_owned())
}
