//! Clients, their requests, and connections to servers.

use crate::{
    admin::page::{Page, quoted},
    control::Proxy,
    metrics::Metrics,
};

/// Rows of clients.
pub(super) fn clients(metrics: &Metrics, page: &mut Page) {
    page.gauge("clients", "Connected clients.", metrics.open_clients);
    page.counter(
        "clients_accepted",
        "Clients that connected.",
        metrics.clients.accepted,
    );
    page.family(
        "clients_closed",
        "counter",
        "Clients closed by the proxy, by reason.",
    );
    for (reason, count) in [
        ("limit", metrics.clients.over_limit),
        ("idle", metrics.clients.idle),
        ("slow", metrics.clients.slow),
        ("request_timeout", metrics.clients.unfinished),
        ("half_closed", metrics.clients.half_closed),
        ("memory", metrics.clients.greedy),
    ] {
        page.row("clients_closed_total", &format!("reason=\"{reason}\""), count);
    }
    page.counter(
        "requests_refused",
        "Requests answered with an error without being routed.",
        metrics.clients.refused,
    );
    page.counter(
        "uploads",
        "Requests streamed because of their size.",
        metrics.clients.uploads,
    );
    page.family(
        "descriptor_shortages",
        "counter",
        "Times that there was no descriptor for a client, who waits, or for a connection to a server.",
    );
    for (what, count) in ["accept", "connect"].into_iter().zip(metrics.shortages) {
        page.row("descriptor_shortages_total", &format!("what=\"{what}\""), count);
    }
}

/// Rows of connections to servers.
pub(super) fn lanes(metrics: &Metrics, page: &mut Page) {
    page.gauge("lanes", "Connections to servers.", metrics.open_lanes);
    page.counter(
        "lanes_opened",
        "Connections to servers that were opened.",
        metrics.lanes_opened,
    );
    page.gauge(
        "requests_in_flight",
        "Requests sent to servers and not answered.",
        metrics.in_flight,
    );
    page.counter(
        "failovers",
        "Requests that went on to another child.",
        metrics.failovers,
    );
}

/// Rows of bytes.
pub(super) fn traffic(metrics: &Metrics, page: &mut Page) {
    let (clients, servers) = (metrics.client_traffic, metrics.server_traffic);
    page.counter(
        "client_received_bytes",
        "Bytes received from clients.",
        clients.received,
    );
    page.counter("client_sent_bytes", "Bytes sent to clients.", clients.sent);
    page.counter(
        "server_received_bytes",
        "Bytes received from servers.",
        servers.received,
    );
    page.counter("server_sent_bytes", "Bytes sent to servers.", servers.sent);
}

/// Rows of requests and replies.
pub(super) fn requests(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    page.family("requests", "counter", "Requests of clients, by command.");
    for ((dialect, command), &count) in proxy.dialects().commands().zip(&metrics.requests) {
        if count > 0 {
            let name = dialect.command_name(command);
            page.row("requests_total", &format!("command=\"{name}\""), count);
        }
    }
    page.family("replies", "counter", "Replies to clients, by outcome.");
    for (outcome, name) in crate::dialect::OUTCOMES {
        page.row(
            "replies_total",
            &format!("outcome=\"{name}\""),
            metrics.replies.with(outcome),
        );
    }
}

/// Rows of keys that were looked for.
pub(super) fn lookups(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    page.family(
        "lookups",
        "counter",
        "Keys that clients have looked for, by command and result.",
    );
    for (number, (dialect, command)) in proxy.dialects().commands().enumerate() {
        if metrics.requests.get(number).is_none_or(|&asked| asked == 0) || !dialect.looks_up(command) {
            continue;
        }
        let name = dialect.command_name(command);
        let counts = metrics.replies.lookups(number);
        for (result, count) in ["hit", "miss"].iter().zip(counts) {
            let labels = format!("command=\"{name}\",result=\"{result}\"");
            page.row("lookups_total", &labels, count);
        }
    }
}

/// Rows of the time that requests take.
pub(super) fn durations(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    page.family(
        "request_duration_seconds",
        "histogram",
        "From a request's last byte to its reply, by listener.",
    );
    for (number, address) in proxy.listeners().iter().enumerate() {
        if let (Some(address), Some(latency)) = (address, metrics.latency.get(number)) {
            page.histogram(
                "request_duration_seconds",
                &format!("listener=\"{}\"", quoted(address)),
                latency,
            );
        }
    }
}
