//! Those options of the command line that the tree depends on.

use std::time::Duration;

use crate::config::schema::Eject;

/// Time for a reply, by how far away the pool is.
#[derive(Clone, Debug, Default)]
pub(super) struct Timeouts {
    pub(super) server: Duration,
    /// Of this region and cluster are we.
    pub(super) region: String,
    pub(super) cluster: String,
    /// For pools elsewhere; zero = not used.
    pub(super) cross_region: Duration,
    pub(super) cross_cluster: Duration,
    pub(super) within_cluster: Duration,
}

impl Timeouts {
    /// The timeout of a pool that says this much about itself.
    pub(super) fn of(&self, pool: Option<Duration>, region: Option<&str>, cluster: Option<&str>) -> Duration {
        let by_distance = match (region, cluster) {
            (Some(region), Some(_)) if region != self.region => self.cross_region,
            (Some(_), Some(cluster)) if cluster != self.cluster => self.cross_cluster,
            (Some(_), Some(_)) => self.within_cluster,
            _ => Duration::ZERO,
        };
        if by_distance.is_zero() {
            pool.unwrap_or(self.server)
        } else {
            by_distance
        }
    }
}

/// What the command line says about the tree.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) timeouts: Timeouts,
    pub(super) eject: Eject,
    /// `/region/cluster/` of keys without a prefix.
    pub(super) default_route: String,
    /// Everything but reads gets the default reply.
    pub(super) only_gets: bool,
    /// Every request is logged.
    pub(super) log_requests: bool,
}
