//! The node agent.

use crate::{admin::page::Page, control::Proxy, members::Distance, metrics::Metrics};

/// Rows of the node agent, where the configuration names one.
pub(super) fn agent(proxy: &Proxy, metrics: &Metrics, page: &mut Page) {
    let Some((agent, localities)) = proxy.agent() else {
        return;
    };
    page.gauge("agent_up", "Is the node agent followed?", u8::from(agent.is_up));
    page.counter("agent_snapshots", "Snapshots of the node agent.", agent.snapshots);
    page.counter(
        "agent_failures",
        "Times that the node agent was not there, ended, or told what cannot be used.",
        agent.failures,
    );
    let (containers, _) = localities.map_or((0, 0), |localities| localities.counts());
    page.gauge(
        "agent_containers",
        "Containers that the node agent tells of.",
        containers,
    );
    page.family(
        "clients_located",
        "gauge",
        "Connected clients, by the smallest place of this host in which they are known to be.",
    );
    for (place, count) in [Distance::NumaNode, Distance::Socket, Distance::Host]
        .into_iter()
        .zip(metrics.located)
    {
        page.row("clients_located", &format!("place=\"{}\"", place.name()), count);
    }
}
