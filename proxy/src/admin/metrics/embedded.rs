//! The embedded store.

use crate::{admin::page::Page, control::Proxy, embedded::store::Counter};

/// Rows of the embedded store, where a listener leads to it.
pub(super) fn embedded(proxy: &Proxy, page: &mut Page) {
    let Some((limit, totals)) = proxy.store() else {
        return;
    };
    page.gauge("embedded_items", "Values in the embedded store.", totals.items);
    page.gauge(
        "embedded_bytes",
        "Memory of the embedded store in use.",
        totals.bytes,
    );
    page.gauge("embedded_limit_bytes", "`embedded.memory`.", limit);
    for (name, counter, help) in [
        ("embedded_stored", Counter::TotalItems, "Values that were stored."),
        (
            "embedded_evictions",
            Counter::Evictions,
            "Values dropped for want of memory.",
        ),
        (
            "embedded_reclaimed",
            Counter::Reclaimed,
            "Values dropped because they had expired or were flushed.",
        ),
        (
            "embedded_too_large",
            Counter::TooLarge,
            "Values refused for their size.",
        ),
        ("embedded_flushes", Counter::Flushes, "`flush_all` commands."),
    ] {
        page.counter(name, help, totals.counters.get(counter));
    }
    page.family(
        "embedded_lookups",
        "counter",
        "Keys that were looked for in the embedded store, by operation and result.",
    );
    for (operation, hits, misses) in [
        ("get", Counter::GetHits, Counter::GetMisses),
        ("touch", Counter::TouchHits, Counter::TouchMisses),
        ("delete", Counter::DeleteHits, Counter::DeleteMisses),
        ("incr", Counter::IncrHits, Counter::IncrMisses),
        ("decr", Counter::DecrHits, Counter::DecrMisses),
        ("cas", Counter::CasHits, Counter::CasMisses),
    ] {
        for (result, counter) in [("hit", hits), ("miss", misses)] {
            let labels = format!("operation=\"{operation}\",result=\"{result}\"");
            page.row("embedded_lookups_total", &labels, totals.counters.get(counter));
        }
    }
}
