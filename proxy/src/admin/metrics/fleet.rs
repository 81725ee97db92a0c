//! The fleet.

use crate::{
    admin::page::{Page, quoted},
    control::{Proxy, View},
    metrics::Metrics,
};

/// Rows of the fleet, where this proxy is in one.
pub(super) fn fleet(proxy: &Proxy, view: &View, metrics: &Metrics, page: &mut Page) {
    let Some(fleet) = proxy.fleet() else { return };
    let status = fleet.status();
    let counts = &metrics.fleet;
    page.gauge("fleet_view", "The number of the newest view.", status.view);
    page.gauge("fleet_peers", "Peers of the newest view.", status.peers.len());
    page.gauge(
        "fleet_is_leader",
        "Does this proxy lead the voters?",
        u8::from(status.is_leader),
    );
    page.gauge(
        "fleet_lease_seconds",
        "What is left of this proxy's lease; 0: it has none.",
        status.lease_seconds,
    );
    page.family(
        "fleet_removals",
        "counter",
        "Peers that were left out, by reason, as this proxy has heard.",
    );
    for (why, count) in fleet.removals() {
        let labels = format!("why=\"{}\"", quoted(why));
        page.row("fleet_removals_total", &labels, count);
    }
    page.counter(
        "fleet_unleased_replies",
        "Answers of the own copy that came after the lease had ended, and were answered as misses.",
        counts.unleased,
    );
    page.family(
        "fleet_write_wait_seconds",
        "histogram",
        "Time from the stamp of a change until all peers had it.",
    );
    page.histogram("fleet_write_wait_seconds", "", &counts.write_wait);
    page.counter(
        "fleet_superseded",
        "Changes of peers that were not applied, as a later one had come before.",
        counts.superseded,
    );
    page.counter(
        "fleet_refused_view",
        "Changes of peers that were refused, as they were of an earlier view.",
        counts.refused_view,
    );
    page.counter(
        "fleet_restamped",
        "Changes that were sent again with a later stamp.",
        counts.again,
    );
    page.counter(
        "fleet_fill_looks",
        "Misses of an own copy that had come back, which were looked up at a neighbour.",
        counts.fill_looks,
    );
    page.counter(
        "fleet_filled",
        "Values of neighbours that were stored in an own copy that had come back.",
        counts.filled,
    );
    page.gauge(
        "fleet_doubt_keys",
        "Changes of peers that are not confirmed.",
        counts.doubts,
    );
    page.family(
        "fleet_owed_keys",
        "gauge",
        "Keys that a peer which is away has missed; -1: all.",
    );
    for (peer, keys) in &counts.missed {
        let keys = keys.map_or(-1, |keys| keys as i64);
        page.row("fleet_owed_keys", &format!("peer=\"{}\"", quoted(peer)), keys);
    }
    page.family(
        "fleet_repairs",
        "counter",
        "Times that this proxy joined, by how its copy was repaired.",
    );
    for (how, count) in fleet.repairs() {
        page.row("fleet_repairs_total", &format!("how=\"{how}\""), count);
    }
    page.gauge(
        "fleet_commit_seconds",
        "Time from a proposal of this proxy to its commit, in the mean.",
        status.commit_seconds,
    );
    page.gauge(
        "fleet_foreign_connections",
        "Connections that the servers of this proxy's copies have from others.",
        view.foreign_connections,
    );
    page.counter("fleet_frames", "Changes sent to peers.", counts.changes_sent);
    page.counter(
        "fleet_frame_flushes",
        "Turns in which changes left for a peer: divide the frames by it for the changes of one write.",
        counts.flushes,
    );
    page.counter(
        "fleet_peer_received_bytes",
        "Bytes received from peers.",
        metrics.peer_traffic.received,
    );
    page.counter(
        "fleet_peer_sent_bytes",
        "Bytes sent to peers.",
        metrics.peer_traffic.sent,
    );
}
