//! The descriptions that servers give of themselves when the proxy logs in.
#![allow(
    clippy::disallowed_types,
    reason = "the lock is taken when a server tells something new, and once by each worker after that"
)]

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

/// A server that tells more has nothing to say for the proxy.
const MOST: usize = 1024;

/// How often any member of this process has told something new. A reader that has seen this number has seen
/// all.
static REVISION: AtomicU64 = AtomicU64::new(0);

/// A member's last description of itself, in the words of its protocol; empty if it gave none. Members of one
/// pool at one address share it.
#[derive(Clone, Debug, Default)]
pub struct SelfDescription(Arc<Mutex<Arc<[u8]>>>);

impl SelfDescription {
    /// How often any member has told something new.
    #[inline]
    pub fn revision() -> u64 {
        REVISION.load(Ordering::Acquire)
    }

    /// The last description.
    pub fn get(&self) -> Arc<[u8]> {
        Arc::clone(&self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The member tells this. What it has told before, or what is too much, changes nothing.
    pub fn tell(&self, said: &[u8]) {
        if said.is_empty() || said.len() > MOST {
            return;
        }
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if **last != *said {
            *last = said.into();
            REVISION.fetch_add(1, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::SelfDescription;

    #[test]
    fn only_what_is_new_is_news() {
        let (one, other) = (SelfDescription::default(), SelfDescription::default());
        let before = SelfDescription::revision();
        one.tell(b"8.0.36");
        assert!(
            SelfDescription::revision() > before,
            "other tests may tell something, too"
        );
        one.tell(b"");
        one.clone().tell(&[b'x'; 1025]);
        assert_eq!((&*one.get(), &*other.get()), (&b"8.0.36"[..], &b""[..]));
        one.clone().tell(b"9.7");
        assert_eq!(&*one.get(), b"9.7");
    }
}
