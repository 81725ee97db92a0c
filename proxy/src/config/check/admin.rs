//! A check of the admin port: who may change something there.

use crate::config::{listen_socket, reading::Reading, schema::Config};

/// Warns of an admin port where others than this host may change something, as it asks for no token.
pub(in crate::config) fn warn_of_admin(config: &Config, cx: &mut Reading) {
    let (Some(address), Some(site)) = (&config.admin, &cx.index.admin) else {
        return;
    };
    let is_own = listen_socket(address).is_none_or(|address| address.ip().is_loopback());
    if is_own || config.admin_tokens.is_some() {
        return;
    }
    let problem = format!("whoever reaches `{address}` may change something there, as by `POST /drain`");
    let remedy = "write `admin: {address: …, token_file: FILE}`, with a token in the file";
    let warning = site.refuse(problem).with_remedy(remedy);
    cx.warnings.push(warning);
}
