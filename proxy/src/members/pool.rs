//! A pool of servers, as it is while the process runs.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64},
    },
};

use crate::protocol::{PoolChanges, PoolCount, PoolOrders, PoolState, SharedCount};

/// A pool's number, the same as long as the process lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// The state that the members of a pool share.
pub struct Pool {
    /// Its number.
    pub id: PoolId,
    /// Its name in the configuration; the address of a server that stands in no pool.
    pub name: Arc<str>,
    /// Too many members are ejected: those that are only suspected are asked again.
    pub fail_open: AtomicBool,
    /// The version that one of its servers has told last, in the words of its protocol; 0 if no server has
    /// told one.
    pub version: AtomicU64,
    /// The state that its protocol keeps for it; `None` if the protocol keeps no state.
    pub state: Option<Box<dyn PoolState>>,
    /// The changes of that.
    pub changes: PoolChanges,
    /// Its protocol's counters of it.
    pub count: PoolCount,
    /// The number of changes of schemas that were seen, of all pools: what one of them has changed may be
    /// read from another.
    pub schema_changes: SharedCount,
    /// The orders of operators for it.
    pub orders: Arc<PoolOrders>,
}

impl fmt::Display for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pool({})", self.name)
    }
}
