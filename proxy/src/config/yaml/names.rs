//! What names in maps are the names of.

use crate::config::form::Named;

/// Names of pools.
#[derive(Debug)]
pub(in crate::config) struct PoolName;

impl Named for PoolName {
    const WHAT: &'static str = "pool";
}

/// Names of routes.
#[derive(Debug)]
pub(in crate::config) struct RouteName;

impl Named for RouteName {
    const WHAT: &'static str = "route";
}
