//! Our format: YAML, strict, with short forms.
//!
//! * `events`: text → tree
//! * `top`: the file's keys, listeners, limits; `fleet`: the section about it; `peer`: a file with that
//!   section alone, beside another program's configuration
//! * `health`: health listeners, and how clients are led away
//! * `discovery`: what listeners tell clients of the proxies
//! * `login`: keys about logins; `users`: the file of users; `names`: what names in maps are the names of
//! * `pool`: how servers are treated
//! * `near`: the near cache; `near_settings`: the file of what was changed while it ran
//! * `slow_requests`: which are kept
//! * `redis_commands`: those that the configuration declares
//! * `permission`: who may use a Unix socket

mod dedicated;
mod discovery;
mod events;
mod fleet;
mod health;
mod login;
mod names;
mod near;
mod near_settings;
mod peer;
mod permission;
mod pool;
mod redis_commands;
mod slow_requests;
mod tls;
mod top;
mod users;

pub(crate) use events::parse as parse_tree;
pub(super) use near_settings::{parse_near_settings, read_near_values};
pub(crate) use peer::PeerFile;
pub(super) use peer::parse_peer;
pub(super) use top::TopKeys;
pub(super) use users::{UserSecret, parse_users};

use super::{Diagnostic, form::Form, reading::Reading, schema::Config};

/// Reads a configuration. If mistakes were recorded, it returns the rest. Checks of the configuration as a
/// whole follow elsewhere.
pub(super) fn parse(text: &str, cx: &mut Reading) -> Result<Config, Diagnostic> {
    let root = events::parse(text)?;
    let keys = TopKeys::read(&root, cx)?;
    Ok(top::build(keys, &root, cx))
}
