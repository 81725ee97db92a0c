//! Proxima's command line and configuration. A change of either is made only here.

use std::{
    env,
    path::{Path, PathBuf},
};

use anyhow::Result;

use super::{Site, Spread, write};
use crate::{
    mysql::account::{PASSWORD, USER},
    process::{Launch, find_program, free_port},
};

/// The end of the route.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Leaf {
    /// The servers of the site.
    Pool,
    /// The in-process store.
    Embedded,
}

/// The binary built beside this one, or else the installed one.
pub(super) fn find() -> Option<PathBuf> {
    let beside = env::current_exe().ok()?.with_file_name("proxima");
    if beside.is_file() {
        Some(beside)
    } else {
        find_program("proxima")
    }
}

/// One worker on the back end `io`.
pub(super) fn launch(program: &Path, site: &Site<'_>, io: &str, leaf: Leaf) -> Result<Launch> {
    if site.protocol.is_mysql() {
        write(site, "users.yaml", &format!("{USER}: {{password: {PASSWORD}}}\n"))?;
        write(site, "password", PASSWORD)?;
    }
    let file = write(site, "proxima.yaml", &configuration(site, leaf))?;
    let file = file.into_os_string();
    Ok(Launch::new(
        program,
        [
            "run".into(),
            "--config".into(),
            file,
            "--io".into(),
            io.into(),
            "--workers".into(),
            "1".into(),
        ],
    ))
}

/// One worker on io_uring, with the file and the flags of twemproxy.
pub(super) fn launch_as_nutcracker(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let file = super::twemproxy::configuration(site)?;
    let words = ["nutcracker", "--io", "io_uring", "--workers", "1"].map(Into::into);
    let flags = [
        "--conf-file".into(),
        file.into_os_string(),
        "--stats-port".into(),
        free_port()?.to_string().into(),
    ];
    Ok(Launch::new(program, words.into_iter().chain(flags)))
}

fn configuration(site: &Site<'_>, leaf: Leaf) -> String {
    let protocol = site.protocol.name();
    let listener = format!(
        "workers: 1\nlimits:\n  clients: 20000\nlisteners:\n  - address: 127.0.0.1:{}\n    protocol: {protocol}\n    \
         route: main\n",
        site.port
    );
    let tls = site.tls.map_or_else(String::new, |pair| {
        let (certificate, key) = (pair.certificate.display(), pair.key.display());
        format!("    tls: {{certificate: {certificate}, key: {key}}}\n")
    });
    let users = if site.protocol.is_mysql() {
        "    users: users.yaml\n"
    } else {
        ""
    };
    let listener = format!("{listener}{users}{tls}");
    if leaf == Leaf::Embedded {
        return format!("{listener}routes:\n  main: embedded\n");
    }
    let servers: Vec<String> = site
        .servers
        .iter()
        .map(|port| format!("\"127.0.0.1:{port}\""))
        .collect();
    const HASH: &str = "hash: {algorithm: ketama_twemproxy, key_hash: fnv1a_64}";
    let dedicated = site.dedicated.map_or_else(String::new, |most| {
        // A reply to the pool's own questions may be late by what is measured between two bursts of a case.
        format!("\n    timeout: 5m\n    dedicated: {{max: {most}, idle: {most}}}")
    });
    let sessions = format!(
        "user: {USER}\n    password_file: password\n    galera: {}{dedicated}",
        site.galera
    );
    let (pool, route) = match site.spread {
        _ if site.protocol.is_mysql() => (&*sessions, "pool"),
        Spread::Hash => (HASH, "pool"),
        Spread::All => (HASH, "all_sync"),
        Spread::Copies => ("replicated: true", "pool"),
    };
    let (near, route) = site.near.wrap(&format!("{{{route}: cache}}"));
    format!(
        "{near}{listener}pools:\n  cache:\n    protocol: {protocol}\n    servers: [{}]\n    {pool}\nroutes:\n  main: {route}\n",
        servers.join(", ")
    )
}
