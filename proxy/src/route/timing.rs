//! Which of the timed requests are slow, and how they are told.

use std::{
    cell::Cell,
    hash::{BuildHasher, RandomState},
    sync::{Arc, OnceLock},
};

use super::slow_requests::{SlowRequest, SlowRequests};
use crate::{
    config::schema::{self, ShownKeys},
    micros::Micros,
};

/// Bytes of a key that are told.
const LONGEST: usize = 1024;

/// What becomes of the requests of one listener that are timed.
#[derive(Debug)]
pub struct Timing {
    pub(super) listener: u16,
    terms: schema::SlowRequests,
    to: Arc<SlowRequests>,
    /// One request in so many is timed.
    pub(super) every: Cell<u32>,
}

impl Timing {
    pub(super) fn new(listener: u16, terms: schema::SlowRequests, to: &Arc<SlowRequests>) -> Self {
        Self {
            listener,
            terms,
            to: Arc::clone(to),
            every: Cell::new(1),
        }
    }

    /// The time from which on a request is slow.
    pub(super) fn over(&self) -> Micros {
        Micros::from(self.terms.over)
    }

    /// The key as people are told it.
    pub(super) fn shown(&self, key: &[u8]) -> Option<String> {
        shown_key(key, self.terms.keys).filter(|_| !key.is_empty())
    }

    /// Keeps a request.
    pub(super) fn put(&self, request: SlowRequest) {
        self.to.put(request, self.terms.keep);
    }
}

/// A key as people are told it; `None`: they are not.
pub fn shown_key(key: &[u8], how: ShownKeys) -> Option<String> {
    match how {
        ShownKeys::Hidden => None,
        ShownKeys::Hashed => Some(hashed(key)),
        ShownKeys::Plain => Some(told(key)),
    }
}

/// The key itself, or what it begins with.
fn told(key: &[u8]) -> String {
    let (begin, mark) = match key.get(..LONGEST) {
        Some(begin) => (begin, "…"),
        None => (key, ""),
    };
    format!("{}{mark}", begin.escape_ascii())
}

/// A word for a key, by a hash of which nobody knows the secret: a short key cannot be found by trying.
fn hashed(key: &[u8]) -> String {
    static SECRET: OnceLock<RandomState> = OnceLock::new();
    format!("#{:016x}", SECRET.get_or_init(RandomState::new).hash_one(key))
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use super::{LONGEST, Timing};
    use crate::config::schema::{self, ShownKeys};

    #[test]
    fn keys_are_told_as_the_configuration_says() {
        let timing = |keys| {
            let terms = schema::SlowRequests {
                over: Duration::from_millis(50),
                keep: 10,
                keys,
            };
            Timing::new(3, terms, &Arc::default())
        };
        assert_eq!(timing(ShownKeys::Hidden).shown(b"k"), None);
        assert_eq!(timing(ShownKeys::Plain).shown(b"k\n").unwrap(), "k\\n");
        let hashed = timing(ShownKeys::Hashed);
        assert_eq!(hashed.shown(b"k"), hashed.shown(b"k"));
        assert_ne!(hashed.shown(b"k"), hashed.shown(b"l"));
        assert_eq!(hashed.shown(b"k").unwrap().len(), 17);
        assert_eq!(timing(ShownKeys::Plain).shown(b""), None);
        let long = timing(ShownKeys::Plain).shown(&[b'k'; 5000]).unwrap();
        assert_eq!(
            (long.len(), long.ends_with('…')),
            (LONGEST + '…'.len_utf8(), true)
        );
    }
}
