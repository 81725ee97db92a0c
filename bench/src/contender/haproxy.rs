//! HAProxy as a TCP relay: the floor for moving bytes without reading them.

use std::path::Path;

use anyhow::Result;

use super::{Site, write};
use crate::process::Launch;

/// Clients that it takes at a time where no more are asked for. Each needs two descriptors.
pub(super) const MOST_CLIENTS: usize = 4_000;

pub(super) fn launch(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let tls = site
        .tls
        .map_or_else(String::new, |pair| format!(" ssl crt {}", pair.both.display()));
    let mut text = format!(
        "global\n  nbthread 1\n  maxconn {}\n\
         defaults\n  mode tcp\n  timeout connect 5s\n  timeout client 1h\n  timeout server 1h\n\
         frontend bench\n  bind 127.0.0.1:{}{tls}\n  default_backend servers\n\
         backend servers\n  balance leastconn\n",
        site.most_clients, site.port
    );
    for (number, port) in site.servers.iter().enumerate() {
        text.push_str(&format!("  server s{number} 127.0.0.1:{port}\n"));
    }
    let file = write(site, "haproxy.cfg", &text)?;
    // -db: stay in the foreground, as one process.
    Ok(Launch::new(
        program,
        ["-db".into(), "-f".into(), file.into_os_string()],
    ))
}
