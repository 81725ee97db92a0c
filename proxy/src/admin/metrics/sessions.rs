//! Sessions of clients, by what they are bound to.

use crate::{admin::page::Page, metrics::Metrics};

/// Rows of sessions, for protocols that tell their state.
pub(super) fn sessions(metrics: &Metrics, page: &mut Page) {
    page.family(
        "sessions",
        "gauge",
        "Sessions of clients, by why they stay at one connection to a server now; free: they do not.",
    );
    for (protocol, state, count) in metrics.sessions.all() {
        let labels = format!("protocol=\"{protocol}\",state=\"{state}\"");
        page.row("sessions", &labels, count);
    }
}
