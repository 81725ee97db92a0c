//! Deletes that servers have not taken.

use crate::{admin::page::Page, control::View, spool::Counts};

/// Rows of the spool, where there is one.
pub(super) fn spool(view: &View, page: &mut Page) {
    let Some(spool) = &view.spool else {
        return;
    };
    page.family(
        "spooled_deletes",
        "counter",
        "Deletes that a server has not taken: kept in a file, refused (their clients got the error), \
         replayed to their servers, or dropped.",
    );
    for (count, event) in Counts::NAMES {
        page.row(
            "spooled_deletes_total",
            &format!("event=\"{event}\""),
            spool.counts().of(count),
        );
    }
}
