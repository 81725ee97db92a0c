//! hash: the child that the hash of the routing key names.

use std::sync::Arc;

use proxima_wire::hash::{self, Distribution};

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::{Algorithm, Hash, OnEject},
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `hash`.
#[derive(Debug)]
pub(in crate::route) struct HashRoute {
    /// The distribution, made once for all workers.
    pub(in crate::route) distribution: Arc<Distribution>,
    /// The algorithm and its options, as configured.
    pub(in crate::route) spec: Hash,
}

impl HashRoute {
    /// The part of the key that is hashed, before the salt.
    #[inline]
    fn hashed<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        let key = hash::routing_key(key, self.spec.stop);
        match self.spec.tag {
            Some(tag) => hash::hash_tag(key, tag),
            None => key,
        }
    }

    /// Gives the part of the key that is hashed to `pick`.
    #[inline]
    pub(super) fn pick(&self, key: &[u8], pick: impl FnOnce(&[u8]) -> usize) -> usize {
        let key = self.hashed(key);
        if self.spec.salt.is_empty() {
            pick(key)
        } else {
            hash::salted(key, self.spec.salt.as_bytes(), pick)
        }
    }
}

impl Choose for HashRoute {
    fn name(&self) -> &'static str {
        routes::ByHash::NAME
    }

    fn is_hash(&self) -> bool {
        true
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        let index = self.pick(query.key, |key| self.distribution.pick(key));
        if self.spec.eject == OnEject::Fail || children.is_up(index) {
            return index;
        }
        self.pick(query.key, |key| {
            self.distribution
                .pick_live(key, |index| children.is_up(index))
                .unwrap_or(index)
        })
    }

    fn choose_four(&self, keys: [&[u8]; 4]) -> Option<[usize; 4]> {
        let unsalted = self.spec.salt.is_empty();
        unsalted.then(|| self.distribution.pick_four(keys.map(|key| self.hashed(key))))
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let key = self.hashed(query.key).escape_ascii().to_string();
        let algorithm = self.spec.algorithm;
        format!("{algorithm} of {key:?}: number {chosen} of {}", children.len())
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::ByHash {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let of_pool = match children {
            routes::Children::Pool(name) => maker.config().pools.get(name).map(|pool| &pool.hash),
            routes::Children::List(_) => None,
        };
        let spec = self
            .hash
            .as_ref()
            .or(of_pool)
            .cloned()
            .unwrap_or_else(|| Hash::of(Algorithm::Ch3));
        let nodes = maker.children(children)?;
        maker.hash(spec, nodes, || format!("{children:?}"))
    }
}
