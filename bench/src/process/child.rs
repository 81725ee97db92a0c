//! A process that ends with its owner, however the owner ends.

use std::{
    ffi::OsString,
    fs::File,
    path::{Path, PathBuf},
    process::{Command, ExitStatus, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use super::Placement;

/// A program and its arguments.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The binary.
    pub(crate) program: PathBuf,
    /// Its arguments.
    pub(crate) arguments: Vec<OsString>,
}

impl Launch {
    /// A program with arguments that are text.
    pub(crate) fn new<S: Into<OsString>>(program: &Path, arguments: impl IntoIterator<Item = S>) -> Self {
        Self {
            program: program.to_owned(),
            arguments: arguments.into_iter().map(Into::into).collect(),
        }
    }
}

/// A running process; dropping it kills it and waits for its end.
///
/// It is started through `setpriv --pdeathsig`, so that the kernel kills it when this process is gone without
/// having dropped anything (Ctrl-C, SIGKILL).
pub(crate) struct Child {
    inner: std::process::Child,
    name: String,
    log: PathBuf,
}

impl Child {
    /// Starts `launch`; what it prints goes to a file in `directory`.
    pub(crate) fn start(launch: &Launch, placement: &Placement, directory: &Path) -> Result<Self> {
        let name = launch
            .program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let log = directory.join(format!("{name}.log"));
        let output = File::options().create(true).append(true).open(&log)?;
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL"]).args(placement.prefix());
        command.arg(&launch.program).args(&launch.arguments);
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output);
        let inner = command
            .spawn()
            .context("cannot start 'setpriv' (package util-linux)")?;
        Ok(Self { inner, name, log })
    }

    /// Its process id; `setpriv` and its like replace themselves, so this is the program's own.
    pub(crate) fn pid(&self) -> u32 {
        self.inner.id()
    }

    /// Fails if the process has ended, with the end of its output.
    pub(crate) fn check_running(&mut self) -> Result<()> {
        match self.inner.try_wait()? {
            Some(status) => bail!(self.obituary(status)),
            None => Ok(()),
        }
    }

    /// Waits for its end; fails when that was not a success.
    pub(crate) fn wait(&mut self) -> Result<()> {
        let status = self.inner.wait()?;
        ensure!(status.success(), self.obituary(status));
        Ok(())
    }

    fn obituary(&self, status: ExitStatus) -> String {
        let output = std::fs::read(&self.log).unwrap_or_default();
        let output = String::from_utf8_lossy(&output);
        let mut last: Vec<&str> = output.lines().rev().take(4).collect();
        last.reverse();
        format!("{} ended ({status}); it printed: {}", self.name, last.join(" | "))
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Either call fails only if the process is gone already.
        let _ = self.inner.kill();
        let _ = self.inner.wait();
    }
}
