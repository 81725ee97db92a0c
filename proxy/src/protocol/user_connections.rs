//! The number of connections of each user in this process.
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a client logs in or leaves, and not on the way of a request"
)]

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// Connections of the clients of all workers, by user.
#[derive(Default)]
pub struct UserConnections(Mutex<HashMap<Box<[u8]>, u32>>);

/// One counted connection of a user. It counts until it is dropped.
pub struct UserConnection {
    of: Arc<UserConnections>,
    user: Box<[u8]>,
}

impl UserConnections {
    /// Counts one more connection of this user. `None` if there are already `most` of them.
    pub fn take(self: &Arc<Self>, user: &[u8], most: Option<u32>) -> Option<UserConnection> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.get(user).copied().unwrap_or(0);
        if most.is_some_and(|most| taken >= most) {
            return None;
        }
        all.insert(user.into(), taken + 1);
        Some(UserConnection {
            of: Arc::clone(self),
            user: user.into(),
        })
    }
}

impl Drop for UserConnection {
    fn drop(&mut self) {
        let mut all = self.of.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(taken) = all.get_mut(&self.user) {
            *taken -= 1;
            if *taken == 0 {
                all.remove(&self.user);
            }
        }
    }
}

impl fmt::Debug for UserConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UserConnections")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_is_counted_until_its_client_leaves() {
        let user_connections = Arc::new(UserConnections::default());
        let first = user_connections.take(b"app", Some(2));
        let second = user_connections.take(b"app", Some(2));
        assert!(first.is_some() && second.is_some() && user_connections.take(b"app", Some(2)).is_none());
        assert!(
            user_connections.take(b"other", Some(1)).is_some(),
            "that is its own"
        );
        assert!(
            user_connections.take(b"app", None).is_some(),
            "there is no limit any more"
        );
        drop(first);
        assert!(user_connections.take(b"app", Some(2)).is_some());
        drop(second);
        assert!(user_connections.0.lock().unwrap().is_empty(), "nobody is left");
    }
}
