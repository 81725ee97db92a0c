//! Listeners that tell their clients of the proxies.

use crate::{
    admin::page::{Page, quoted},
    control::{AnnouncementStatus, View},
};

type Value = fn(&AnnouncementStatus) -> u64;

const FAMILIES: [(&str, &str, Value); 3] = [
    (
        "discovery_up",
        "Is it known who the proxies are? Otherwise clients are told what was known before.",
        |told| told.is_up.into(),
    ),
    (
        "discovery_proxies",
        "Proxies that clients of this listener are told of.",
        |told| told.proxies as u64,
    ),
    (
        "discovery_version",
        "The version of the list of proxies, the same at all proxies that have the same list.",
        |told| told.version,
    ),
];

/// Rows of these listeners, where there are any.
pub(super) fn discovery(view: &View, page: &mut Page) {
    let told = &view.announcements;
    if told.is_empty() {
        return;
    }
    for (name, help, value) in FAMILIES {
        page.family(name, "gauge", help);
        for told in told {
            page.row(
                name,
                &format!("listener=\"{}\"", quoted(&told.listener)),
                value(told),
            );
        }
    }
}
