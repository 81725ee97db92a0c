//! memcached's built-in proxy: one thread, one pool.

use std::path::Path;

use anyhow::Result;

use super::{Site, memcached, write};
use crate::process::Launch;

pub(super) fn launch(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let mut text = String::from("function mcp_config_pools()\n  local servers = {}\n");
    for port in site.servers {
        text.push_str(&format!(
            "  table.insert(servers, mcp.backend('s{port}', '127.0.0.1', {port}))\n"
        ));
    }
    text.push_str(
        "  return mcp.pool(servers)\nend\n\
         function mcp_config_routes(pool)\n  mcp.attach(mcp.CMD_ANY_STORAGE, pool)\nend\n",
    );
    let file = write(site, "memcached-proxy.lua", &text)?;
    let mut launch = memcached::launch(program, site.port);
    launch
        .arguments
        .extend(["-o".into(), format!("proxy_config={}", file.display()).into()]);
    Ok(launch)
}
