//! How many clients of the process are which user.
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a client logs in or leaves, and not on the way of a request"
)]

use std::{
    collections::HashMap,
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

/// The clients of all workers, by user.
#[derive(Default)]
pub struct Seats(Mutex<HashMap<Box<[u8]>, u32>>);

/// The place of one client among those of its user, which is free when this is dropped.
pub struct Seat {
    of: Arc<Seats>,
    user: Box<[u8]>,
}

impl Seats {
    /// A place for one more client of this user. `None`: there are as many as `most` allows.
    pub fn take(self: &Arc<Self>, user: &[u8], most: Option<u32>) -> Option<Seat> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = all.get(user).copied().unwrap_or(0);
        if most.is_some_and(|most| taken >= most) {
            return None;
        }
        all.insert(user.into(), taken + 1);
        Some(Seat {
            of: Arc::clone(self),
            user: user.into(),
        })
    }
}

impl Drop for Seat {
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

impl fmt::Debug for Seats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Seats")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_its_client_leaves() {
        let seats = Arc::new(Seats::default());
        let first = seats.take(b"app", Some(2));
        let second = seats.take(b"app", Some(2));
        assert!(first.is_some() && second.is_some() && seats.take(b"app", Some(2)).is_none());
        assert!(seats.take(b"other", Some(1)).is_some(), "that is its own");
        assert!(seats.take(b"app", None).is_some(), "there is no limit any more");
        drop(first);
        assert!(seats.take(b"app", Some(2)).is_some());
        drop(second);
        assert!(seats.0.lock().unwrap().is_empty(), "nobody is left");
    }
}
