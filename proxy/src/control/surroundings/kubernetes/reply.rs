//! A reply of the API server.

use hyper::body::Incoming;
use tokio::task::AbortHandle;

/// A reply. Its connection ends with it.
pub(super) struct Reply {
    pub(super) body: Incoming,
    pub(super) task: AbortHandle,
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.task.abort();
    }
}
