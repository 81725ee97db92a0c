//! The node agent.

use crate::{
    admin::page::Page,
    control::View,
    members::{Distance, Localities},
    metrics::Metrics,
};

/// Rows of the node agent, where the configuration names one.
pub(super) fn agent(view: &View, metrics: &Metrics, page: &mut Page) {
    let Some(agent) = &view.agent else {
        return;
    };
    page.gauge("agent_up", "Is the node agent followed?", u8::from(agent.is_up));
    page.counter("agent_snapshots", "Snapshots of the node agent.", agent.snapshots);
    page.counter(
        "agent_failures",
        "Times that the node agent was not there, ended, or told what cannot be used.",
        agent.failures,
    );
    let (containers, _) = view.localities().map_or((0, 0), Localities::counts);
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
