//! all_sync, all_majority, all_fastest, all_initial, all_async: these send to all children, and differ only
//! in the wait rule.

use crate::route::tree::Wait;

/// The name of the gather that has this wait rule.
pub(in crate::route) fn name(wait: Wait) -> &'static str {
    match wait {
        Wait::All => "all_sync",
        Wait::Majority => "all_majority",
        Wait::Fastest => "all_fastest",
        Wait::Initial => "all_initial",
        Wait::Hit => "first_hit",
        Wait::None => "all_async",
    }
}
