//! What only the whole configuration can tell, for every front door.

mod copies;
mod detours;
mod hashes;
mod listeners;
mod names;
mod nesting;
mod protocols;

pub(super) use copies::warn_of_two;
pub(crate) use detours::detours;
pub(super) use hashes::{UnusableHash, shared_out};
pub(super) use names::warn_of_both;

use super::{Complaint, reading::Index, schema::Config};

/// All complaints about `config`, in the order of the text. `index` says where things stand. What has a
/// mistake of its own may be missing in `config`: nothing is said that would not hold with it there.
pub(crate) fn check(config: &Config, index: &Index) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    complaints.extend(names::unknown(config, index));
    complaints.extend(hashes::lengths(config, index));
    complaints.extend(copies::unkept(config, index));
    complaints.extend(listeners::taken(config, index));
    complaints.extend(hashes::unusable(config, index));
    complaints.extend(protocols::joined(config, index));
    let circles = nesting::circles(config, index);
    // Measuring the depth follows names, and would never end in a circle.
    if circles.is_empty() {
        complaints.extend(nesting::too_deep(config, index));
    }
    complaints.extend(circles);
    complaints.sort_by_key(|complaint| complaint.at);
    complaints
}
