//! MariaDB itself: a new data directory, the account and the table of a run, and nothing that waits for a
//! disk.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use rustix::process::geteuid;

use crate::{
    mysql::{
        account::{PASSWORD, SCHEMA, USER},
        request::CREATE,
    },
    process::{Launch, find_program},
};

/// MariaDB on 127.0.0.1:`port`, whose files are in this folder.
pub(crate) fn launch(program: &Path, port: u16, directory: &Path) -> Result<Launch> {
    let place = directory.join(format!("mariadb-{port}"));
    fs::create_dir_all(&place)?;
    let file = |name: &str| place.join(name).display().to_string();
    let sql = format!(
        "CREATE DATABASE {SCHEMA};\nCREATE USER {USER} IDENTIFIED BY '{PASSWORD}';\n\
         GRANT ALL ON {SCHEMA}.* TO {USER};\nGRANT RELOAD ON *.* TO {USER};\nUSE {SCHEMA};\n{CREATE};\n"
    );
    fs::write(file("account.sql"), sql)?;
    let mut common = vec![
        "--no-defaults".into(),
        format!("--datadir={}", file("data")),
        // A server that starts removes what others have in the folder that they share.
        format!("--tmpdir={}", place.display()),
    ];
    if geteuid().is_root() {
        // Without it a server refuses to be root's.
        common.push("--user=root".into());
    }
    let maker = find_program("mariadb-install-db").context("no mariadb-install-db found")?;
    let made = Command::new(maker)
        .args(&common)
        .args(["--skip-test-db", "--auth-root-authentication-method=normal"])
        .stdout(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&made.stderr);
    ensure!(made.status.success(), "mariadb-install-db: {}", said.trim());
    let own = [
        format!("--port={port}"),
        format!("--socket={}", file("socket")),
        format!("--pid-file={}", file("pid")),
        format!("--init-file={}", file("account.sql")),
        "--bind-address=127.0.0.1".into(),
        "--skip-name-resolve".into(),
        "--max-connections=12000".into(),
        "--innodb-flush-log-at-trx-commit=0".into(),
    ];
    Ok(Launch::new(program, common.into_iter().chain(own)))
}
