//! Slow requests.

use crate::{admin::page::Page, control::Proxy};

/// Rows of slow requests, where they are kept.
pub(super) fn slow(proxy: &Proxy, page: &mut Page) {
    if proxy.slow_terms().is_none() {
        return;
    }
    let (count, missed) = proxy.slow_requests().counts();
    page.counter(
        "slow_requests",
        "Requests that were slow, of those that were timed.",
        count,
    );
    page.counter(
        "slow_requests_missed",
        "Those of them that could not be kept at that moment.",
        missed,
    );
}
