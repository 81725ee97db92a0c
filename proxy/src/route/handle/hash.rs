//! hash: one child by the hash of the routing key.

use std::sync::Arc;

use proxima_wire::hash::{self, Distribution};

use super::Random;
use crate::{
    config::schema::Hash,
    route::tree::{Children, Choose, Query},
};

#[derive(Debug)]
pub(in crate::route) struct HashRoute {
    /// Built once for all workers.
    pub(in crate::route) distribution: Arc<Distribution>,
    pub(in crate::route) spec: Hash,
}

/// Keys and salts are bounded (250 bytes and what `check` allows), so a salted key fits on the stack.
const SALTED: usize = 512;

impl HashRoute {
    #[inline]
    fn hashed<'a>(&self, key: &'a [u8], salted: &'a mut [u8; SALTED]) -> &'a [u8] {
        let mut key = hash::routing_key(key, self.spec.stop);
        if let Some(tag) = self.spec.tag {
            key = hash::hash_tag(key, tag);
        }
        let salt = self.spec.salt.as_bytes();
        if salt.is_empty() {
            return key;
        }
        let end = (key.len() + salt.len()).min(SALTED);
        let keyed = key.len().min(SALTED);
        salted[..keyed].copy_from_slice(&key[..keyed]);
        salted[keyed..end].copy_from_slice(&salt[..end - keyed]);
        &salted[..end]
    }
}

impl Choose for HashRoute {
    fn name(&self) -> &'static str {
        "hash"
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize {
        let mut salted = [0; SALTED];
        let key = self.hashed(query.key, &mut salted);
        let index = self.distribution.pick(key, random.bits());
        if !self.spec.eject || children.is_up(index) {
            return index;
        }
        self.distribution.pick_live(key, random.bits(), &|index| children.is_up(index)).unwrap_or(index)
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let mut salted = [0; SALTED];
        let key = self.hashed(query.key, &mut salted).escape_ascii().to_string();
        let algorithm = self.spec.algorithm;
        format!("{algorithm:?} of {key:?}: number {chosen} of {}", children.len())
    }
}
