//! Checks of addresses: no two of them can be bound at once.

use crate::config::{
    Diagnostic, listen_socket,
    reading::{Index, Site},
    schema::Config,
};

/// Each address that an earlier one takes.
pub(super) fn taken(config: &Config, index: &Index) -> Vec<Diagnostic> {
    let addresses = config
        .listeners
        .iter()
        .map(|listener| listener.address.as_str())
        .chain(config.admin.as_deref())
        .chain(config.health.iter().map(|listener| listener.address.as_str()));
    let sites = index
        .listeners
        .iter()
        .chain(index.admin.as_ref())
        .chain(&index.health);
    let statistics = index.statistics.iter().map(|(address, site)| (&**address, site));
    let all: Vec<(&str, &Site)> = addresses.zip(sites).chain(statistics).collect();
    let taken = all.iter().enumerate().filter_map(|(i, (address, site))| {
        let (other, other_site) = all[..i].iter().find(|(other, _)| collide(address, other))?;
        let problem = format!("`{address}` is taken by `{other}` in line {}", other_site.at.line);
        Some(site.refuse(problem).with_remedy("choose another port"))
    });
    taken.collect()
}

fn collide(one: &str, other: &str) -> bool {
    match (listen_socket(one), listen_socket(other)) {
        (Some(one), Some(other)) => {
            let wildcard = one.ip().is_unspecified() || other.ip().is_unspecified();
            let dual = [one, other]
                .iter()
                .any(|a| a.is_ipv6() && a.ip().is_unspecified());
            one.port() == other.port()
                && one.port() != 0
                && (one.ip() == other.ip() || (wildcard && (dual || one.is_ipv4() == other.is_ipv4())))
        }
        _ => one == other,
    }
}
