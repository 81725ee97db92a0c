//! memcached itself: one worker thread, enough memory for every workload of the side by side.

use std::path::Path;

use crate::process::Launch;

/// memcached on 127.0.0.1:`port`.
pub(crate) fn launch(program: &Path, port: u16) -> Launch {
    let port = port.to_string();
    // As root, memcached changes to the user that -u names. root is no change; after a change the kernel
    // would forget to end it with this process. For other users -u has no effect.
    Launch::new(
        program,
        [
            "-l",
            "127.0.0.1",
            "-p",
            &port,
            "-U",
            "0",
            "-t",
            "1",
            "-m",
            "512",
            "-c",
            "12000",
            "-u",
            "root",
        ],
    )
}
