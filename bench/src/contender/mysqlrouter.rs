//! MySQL Router with one I/O thread, before static servers. It parses packets, and leaves greetings and
//! passwords to the servers.

use std::path::Path;

use anyhow::Result;

use super::{Site, write};
use crate::process::Launch;

pub(super) fn launch(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let folder = site.directory.display();
    let mut text = format!("[DEFAULT]\nruntime_folder={folder}\ndata_folder={folder}\n");
    // Debian's program looks for its plugins below /usr, even where it was unpacked elsewhere.
    let plugins = program
        .canonicalize()?
        .with_file_name("../lib/mysqlrouter/plugin");
    if plugins.is_dir() {
        text.push_str(&format!("plugin_folder={}\n", plugins.display()));
    }
    let servers: Vec<String> = site
        .servers
        .iter()
        .map(|port| format!("127.0.0.1:{port}"))
        .collect();
    // Without a folder, the log goes to standard error. In PASSTHROUGH the client gets the server's greeting;
    // otherwise Router sends its own, with a login method that clients of a run do not have.
    text.push_str(&format!(
        "logging_folder=\nmax_total_connections=100000\n\
         [logger]\nlevel=warning\n\
         [io]\nthreads=1\n\
         [routing:bench]\nbind_address=127.0.0.1\nbind_port={}\ndestinations={}\nrouting_strategy=round-robin\n\
         protocol=classic\nclient_ssl_mode=PASSTHROUGH\nserver_ssl_mode=AS_CLIENT\n\
         max_connect_errors=4294967295\n",
        site.port,
        servers.join(",")
    ));
    let file = write(site, "mysqlrouter.conf", &text)?;
    Ok(Launch::new(program, ["-c".into(), file.into_os_string()]))
}
