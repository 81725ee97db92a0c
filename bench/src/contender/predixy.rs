//! predixy with one worker thread, over standalone servers.

use std::{fmt::Write, path::Path};

use anyhow::Result;

use super::{Site, write};
use crate::process::Launch;

pub(super) fn launch(program: &Path, site: &Site<'_>) -> Result<Launch> {
    let mut text = format!(
        "Name bench\nBind 127.0.0.1:{}\nWorkerThreads 1\nClientTimeout 0\nLogVerbSample 0\nLogDebugSample 0\n\
         LogInfoSample 0\nAuthority {{\n  Auth {{\n    Mode write\n  }}\n}}\n\
         StandaloneServerPool {{\n  RefreshMethod fixed\n  Hash crc16\n  HashTag \"{{}}\"\n  Distribution modula\n",
        site.port
    );
    for (number, port) in site.servers.iter().enumerate() {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "  Group g{number} {{\n    + 127.0.0.1:{port}\n  }}");
    }
    text.push_str("}\n");
    let file = write(site, "predixy.conf", &text)?;
    Ok(Launch::new(program, [file.into_os_string()]))
}
