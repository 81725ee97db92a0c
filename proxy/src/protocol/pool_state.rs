//! The state that a protocol keeps for a pool while the process runs.

use std::sync::Arc;

use proxima_wire::message::Class;

/// State of one pool: a map of slots, roles of members, a clock. It is made once for each pool and shared by
/// all workers. A member is named by its index in `addresses`, which lists the pool's members in the order of
/// the configuration.
pub trait PoolState: Send + Sync {
    /// Must requests of this class for this key wait for now? The question is repeated until they need not
    /// wait, or until the pool's time-out has passed. By default none must wait.
    fn holds(&self, _class: Class, _key: &[u8]) -> bool {
        false
    }

    /// The member for a request of this class for this key. `None`: the pool's hash decides. By default it
    /// always does.
    fn member(&self, _class: Class, _key: &[u8], _addresses: &[Arc<str>]) -> Option<usize> {
        None
    }

    /// The member that must be asked instead, according to this reply. By default no reply redirects.
    fn redirect(&self, _key: &[u8], _reply: &[u8], _addresses: &[Arc<str>]) -> Option<usize> {
        None
    }
}
