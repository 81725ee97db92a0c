//! A detached daemon, as twemproxy's.

use std::{
    env,
    ffi::OsString,
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use crate::frontdoor::nutcracker::DETACHED;

/// Starts this program once more with the same arguments, detached: the new process is the daemon.
///
/// # Errors
/// It cannot be started.
pub fn detach(arguments: impl IntoIterator<Item = OsString>) -> io::Result<()> {
    let mut arguments: Vec<OsString> = arguments.into_iter().collect();
    let name = arguments.first().cloned().unwrap_or_default();
    let is_called_so = Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "nutcracker");
    // The arguments of twemproxy's begin behind the name that it is called by.
    let at = (if is_called_so { 1 } else { 2 }).min(arguments.len());
    arguments.insert(at, format!("--{DETACHED}").into());
    Command::new(env::current_exe()?)
        .arg0(name)
        .args(arguments.into_iter().skip(1))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .map(drop)
}

/// Leaves the session of the terminal.
pub fn leave_terminal() {
    // It fails only where this process leads a session already.
    let _ = rustix::process::setsid();
}
