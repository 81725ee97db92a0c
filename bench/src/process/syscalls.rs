//! Counts the system calls of a running process with strace.

use std::{
    env, fs,
    path::{Path, PathBuf},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};

use super::{Child, Launch, Placement};

/// The full path of a program, looked up in `PATH` and where Debian keeps servers.
pub(crate) fn find_program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let servers = [PathBuf::from("/usr/sbin"), PathBuf::from("/usr/local/sbin")];
    env::split_paths(&path)
        .chain(servers)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

/// strace, attached to a process.
pub(crate) struct SyscallTrace {
    strace: Child,
    table: PathBuf,
}

impl SyscallTrace {
    /// Attaches to every thread of `pid`, and returns once it counts. `None`: strace is not installed.
    pub(crate) fn attach(pid: u32, directory: &Path) -> Result<Option<Self>> {
        let Some(program) = find_program("strace") else {
            return Ok(None);
        };
        let table = directory.join("syscalls.txt");
        let mut launch = Launch::new(&program, ["-c", "-f", "-p", &pid.to_string(), "-o"]);
        launch.arguments.push(table.clone().into());
        let mut strace = Child::start(&launch, &Placement::Inherited, directory)?;
        let deadline = Instant::now() + Duration::from_secs(5);
        loop {
            strace.check_running().context("strace cannot attach")?;
            let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
            if status
                .lines()
                .any(|line| line.starts_with("TracerPid:") && !line.ends_with("\t0"))
            {
                break;
            }
            ensure!(Instant::now() < deadline, "strace did not attach within 5 s");
            thread::sleep(Duration::from_millis(5));
        }
        // It is attached to the main thread; the others follow at once.
        thread::sleep(Duration::from_millis(50));
        Ok(Some(Self { strace, table }))
    }

    /// Detaches and returns how many system calls were made since.
    pub(crate) fn finish(mut self) -> Result<u64> {
        let pid = Pid::from_raw(self.strace.pid() as i32).context("strace has no process id")?;
        kill_process(pid, Signal::INT)?;
        let deadline = Instant::now() + Duration::from_secs(5);
        while self.strace.check_running().is_ok() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(5));
        }
        total(&fs::read_to_string(&self.table)?)
    }
}

/// The number of calls in the last line of strace's table: `100.00    0.1    5   1234   7 total`.
fn total(table: &str) -> Result<u64> {
    let line = table
        .lines()
        .find(|line| line.ends_with(" total"))
        .context("strace wrote no table")?;
    line.split_whitespace()
        .nth(3)
        .and_then(|calls| calls.parse().ok())
        .context("strace's table reads otherwise")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_total_of_straces_table_is_read() {
        let table = "% time     seconds  usecs/call     calls    errors syscall\n\
                     ------ ----------- ----------- --------- --------- ----------------\n \
                     60.00    0.000030           3        10         2 read\n\
                     ------ ----------- ----------- --------- --------- ----------------\n\
                     100.00    0.000050           3        15         2 total\n";
        assert_eq!(total(table).unwrap(), 15);
        assert!(total("").is_err());
    }
}
