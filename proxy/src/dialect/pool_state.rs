//! What a protocol keeps of a pool while the process runs.

use std::sync::Arc;

use proxima_wire::message::Class;

/// A map of slots, roles of members, a clock: made once for each pool, shared by all workers. A member is named by its position in
/// `addresses`, which are those of the pool's members in the order of the configuration.
pub trait PoolState: Send + Sync {
    /// Must requests of this class for this key wait for now? They are asked about again, until they need not or the pool's time-out
    /// has passed. By default none must.
    fn holds(&self, _class: Class, _key: &[u8]) -> bool {
        false
    }

    /// The member that a request of this class for this key is for. `None`: the pool's hash says. By default it always does.
    fn member(&self, _class: Class, _key: &[u8], _addresses: &[Arc<str>]) -> Option<usize> {
        None
    }

    /// The member that a reply says must be asked instead, for this key. By default no reply says so.
    fn redirect(&self, _key: &[u8], _reply: &[u8], _addresses: &[Arc<str>]) -> Option<usize> {
        None
    }
}
