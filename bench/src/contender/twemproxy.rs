//! twemproxy: ketama (or another distribution) over FNV-1a (64 bits), one connection to each server.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::{Site, write};
use crate::{
    process::{Launch, free_port},
    protocol::Protocol,
};

/// Writes its configuration, which Proxima reads as well.
pub(super) fn configuration(site: &Site<'_>) -> Result<PathBuf> {
    let mut text = format!(
        "bench:\n  listen: 127.0.0.1:{}\n  hash: fnv1a_64\n  distribution: {}\n  timeout: 10000\n  \
         backlog: 4096\n  preconnect: true\n  auto_eject_hosts: false\n  servers:\n",
        site.port,
        site.distribution.name()
    );
    for port in site.servers {
        text.push_str(&format!("   - 127.0.0.1:{port}:1\n"));
    }
    if site.protocol == Protocol::Redis {
        text.push_str("  redis: true\n");
    }
    write(site, "twemproxy.yml", &text)
}

pub(super) fn launch(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let file = configuration(site)?;
    let in_directory = |name| site.directory.join(name).into_os_string();
    Ok(Launch::new(
        program,
        [
            "--conf-file".into(),
            file.into_os_string(),
            "--output".into(),
            in_directory("twemproxy.log"),
            // Its default level, 5, writes a log line for every request.
            "--verbose".into(),
            "4".into(),
            "--pid-file".into(),
            in_directory("twemproxy.pid"),
            "--stats-addr".into(),
            "127.0.0.1".into(),
            "--stats-port".into(),
            free_port()?.to_string().into(),
        ],
    ))
}
