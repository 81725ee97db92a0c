//! Turns DNS records into servers. The order of records means nothing, and many name servers shuffle it.
//! Servers are therefore sorted: the same records give the same list.

use std::{collections::BTreeMap, net::SocketAddr};

use hickory_resolver::proto::rr::rdata::SRV;

use crate::config::schema::Server;

/// The servers at these addresses, each with a weight.
pub(super) fn servers(found: impl IntoIterator<Item = (SocketAddr, u16)>) -> Vec<Server> {
    let mut weights: BTreeMap<SocketAddr, u16> = BTreeMap::new();
    for (address, weight) in found {
        // A weight of 0 means "hardly ever" in SRV records, and nothing to a hash.
        let weight = weight.max(1);
        let known = weights.entry(address).or_insert(weight);
        *known = weight.max(*known);
    }
    // Kubernetes gives each of n pods the weight 100 / n. In lowest terms the weights stay the same while
    // pods come and go, and so do the connections.
    let common = weights
        .values()
        .fold(0, |common, &weight| divisor(common, weight));
    weights
        .into_iter()
        .map(|(address, weight)| Server {
            address: address.to_string(),
            name: None,
            weight: f64::from(weight / common),
            zone: None,
            pod: None,
        })
        .collect()
}

/// The greatest common divisor.
fn divisor(one: u16, other: u16) -> u16 {
    match other {
        0 => one,
        _ => divisor(other, one % other),
    }
}

/// The records of the best priority. Records of other priorities are for when all of these are down, for
/// which a second pool and a failover are the better means. Records that are no servers are left out.
pub(super) fn best(records: impl IntoIterator<Item = SRV>) -> Vec<SRV> {
    // A target of "." means that the name has no such service.
    let mut records: Vec<SRV> = records
        .into_iter()
        .filter(|record| record.port != 0 && !record.target.is_root())
        .collect();
    let best = records.iter().map(|record| record.priority).min();
    records.retain(|record| Some(record.priority) == best);
    records
}

#[cfg(test)]
mod tests {
    use hickory_resolver::proto::rr::Name;

    use super::*;

    fn listed(found: &[(&str, u16)]) -> Vec<(String, f64)> {
        servers(
            found
                .iter()
                .map(|(address, weight)| (address.parse().unwrap(), *weight)),
        )
        .into_iter()
        .map(|server| (server.address, server.weight))
        .collect()
    }

    fn expected(servers: &[(&str, f64)]) -> Vec<(String, f64)> {
        servers
            .iter()
            .map(|(address, weight)| ((*address).to_owned(), *weight))
            .collect()
    }

    #[test]
    fn the_order_of_records_and_repeated_ones_mean_nothing() {
        let sorted = expected(&[("10.0.0.2:1", 1.0), ("10.0.0.10:1", 1.0), ("[::1]:1", 1.0)]);
        assert_eq!(
            listed(&[("[::1]:1", 1), ("10.0.0.10:1", 1), ("10.0.0.2:1", 1)]),
            sorted
        );
        assert_eq!(
            listed(&[
                ("10.0.0.2:1", 1),
                ("[::1]:1", 1),
                ("10.0.0.10:1", 1),
                ("10.0.0.2:1", 1)
            ]),
            sorted
        );
        assert!(listed(&[]).is_empty());
    }

    #[test]
    fn weights_are_in_lowest_terms() {
        for (weights, lowest) in [
            ([50, 50], [1.0, 1.0]),
            ([33, 33], [1.0, 1.0]),
            ([0, 0], [1.0, 1.0]),
            ([60, 20], [3.0, 1.0]),
            ([0, 10], [1.0, 10.0]),
            ([65_535, 65_534], [65_535.0, 65_534.0]),
        ] {
            assert_eq!(
                listed(&[("10.0.0.1:1", weights[0]), ("10.0.0.2:1", weights[1])]),
                expected(&[("10.0.0.1:1", lowest[0]), ("10.0.0.2:1", lowest[1])])
            );
        }
    }

    #[test]
    fn only_the_best_priority_counts() {
        let record =
            |priority, port, target: &str| SRV::new(priority, 1, port, Name::from_ascii(target).unwrap());
        let ports = |records: Vec<SRV>| best(records).iter().map(|record| record.port).collect::<Vec<_>>();
        assert_eq!(
            ports(vec![
                record(20, 1, "a."),
                record(10, 2, "b."),
                record(10, 3, "c.")
            ]),
            [2, 3]
        );
        // Only records that are servers count for the priority.
        assert_eq!(
            ports(vec![record(0, 0, "a."), record(0, 9, "."), record(5, 4, "d.")]),
            [4]
        );
        assert!(ports(vec![]).is_empty());
    }
}
