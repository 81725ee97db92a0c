//! The least that a connection for every request costs: this program itself, as `proxima-bench accept-loop`.

use std::path::Path;

use super::Site;
use crate::process::Launch;

/// The loop on 127.0.0.1.
pub(super) fn launch(program: &Path, site: &Site<'_>) -> Launch {
    let (port, size) = (site.port.to_string(), site.value_size.to_string());
    let protocol = site.protocol.name();
    Launch::new(
        program,
        [
            "accept-loop",
            "--port",
            &port,
            "--value-size",
            &size,
            "--protocol",
            protocol,
        ],
    )
}
