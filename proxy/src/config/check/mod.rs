//! Checks of the configuration as a whole, for every front door.

mod admin;
mod bypass_writes;
mod copies;
mod fleet;
mod freshness;
mod hashes;
mod health;
mod listeners;
mod names;
mod near;
mod nesting;
mod protocols;

pub(super) use admin::warn_of_admin;
pub(crate) use bypass_writes::bypass_writes;
pub(super) use copies::warn_of_two;
pub(super) use hashes::{UnusableHash, shared_out};
pub(super) use names::warn_of_both;
pub(super) use near::warn_of_near;

use super::{Diagnostic, reading::Index, schema::Config};

/// All diagnostics about `config`, in the order of the text. `index` gives the places. Parts with a mistake
/// of their own may be missing in `config`; no diagnostic follows only from that.
pub(crate) fn check(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    diagnostics.extend(names::unknown(config, index));
    diagnostics.extend(hashes::lengths(config, index));
    diagnostics.extend(copies::unkept(config, index));
    diagnostics.extend(fleet::unkept(config, index));
    diagnostics.extend(freshness::unkept(config, index));
    diagnostics.extend(listeners::taken(config, index));
    diagnostics.extend(near::unfit(config, index));
    diagnostics.extend(near::rules(config, index));
    diagnostics.extend(health::unreachable(config, index));
    diagnostics.extend(hashes::unusable(config, index));
    diagnostics.extend(protocols::joined(config, index));
    diagnostics.extend(protocols::operations(config, index));
    let circles = nesting::circles(config, index);
    // The measure of depth follows names, and would never end in a circle.
    if circles.is_empty() {
        diagnostics.extend(nesting::too_deep(config, index));
    }
    diagnostics.extend(circles);
    diagnostics.sort_by_key(|diagnostic| diagnostic.at);
    diagnostics
}
