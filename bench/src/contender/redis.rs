//! Redis itself: nothing is written to disk.

use std::path::Path;

use crate::process::Launch;

/// Redis on 127.0.0.1:`port`.
pub(crate) fn launch(program: &Path, port: u16) -> Launch {
    let port = port.to_string();
    let arguments = [
        "--bind",
        "127.0.0.1",
        "--port",
        &port,
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    Launch::new(program, arguments.into_iter().chain(["--maxclients", "12000"]))
}
