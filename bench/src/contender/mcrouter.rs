//! mcrouter with one proxy thread and its default hash.

use std::path::Path;

use anyhow::Result;
use serde_json::json;

use super::{Site, write};
use crate::process::Launch;

pub(super) fn launch(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let servers: Vec<String> = site
        .servers
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    let text = json!({ "pools": { "cache": { "servers": servers } }, "route": "PoolRoute|cache" });
    let file = write(site, "mcrouter.json", &text.to_string())?;
    let spool = site.directory.join("mcrouter");
    std::fs::create_dir_all(&spool)?;
    Ok(Launch::new(
        program,
        [
            "--listen-addresses=127.0.0.1".into(),
            format!("--port={}", site.port),
            "--num-proxies=1".into(),
            format!("--config-file={}", file.display()),
            format!("--stats-root={}", spool.display()),
            format!("--async-dir={}", spool.display()),
        ],
    ))
}
