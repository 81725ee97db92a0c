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
    // The form that 1.6.24 and later ask for: a function generator around the pool.
    text.push_str(
        "  return mcp.pool(servers)\nend\n\
         function mcp_config_routes(pool)\n  local route = mcp.funcgen_new()\n  \
         local handle = route:new_handle(pool)\n  route:ready({ n = 'bench', f = function(context)\n    \
         return function(request) return context:enqueue_and_wait(request, handle) end\n  end })\n  \
         mcp.attach(mcp.CMD_ANY_STORAGE, route)\nend\n",
    );
    let file = write(site, "memcached-proxy.lua", &text)?;
    let mut launch = memcached::launch(program, site.port);
    launch
        .arguments
        .extend(["-o".into(), format!("proxy_config={}", file.display()).into()]);
    Ok(launch)
}
