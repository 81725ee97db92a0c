//! hide_prefix and bare_key: a key keeps the routing prefix that was asked for, unseen by the routes between
//! them.
//!
//! A key such as `/*/*/k` reaches each route of its own as `k`, and the servers that keep prefixes as it was
//! asked for.

use proxima_wire::message::{Outcome, Request};

use super::Random;
use crate::route::tree::{Query, Wrap, Wrapped};

/// The `/region/cluster/` that a key begins with; `None`: the key has no such prefix.
pub(super) fn prefix(key: &[u8]) -> Option<&[u8]> {
    if key.first() != Some(&b'/') {
        return None;
    }
    let mut slashes = memchr::memchr_iter(b'/', key).skip(2);
    slashes.next().map(|end| &key[..=end])
}

/// A key as its routing prefix and the rest. The prefix is empty if there is none.
pub(in crate::route) fn behind_prefix(key: &[u8]) -> (&[u8], &[u8]) {
    key.split_at(prefix(key).map_or(0, <[u8]>::len))
}

/// The routes below look at the key without its routing prefix.
#[derive(Debug)]
pub(in crate::route) struct HidePrefix;

impl Wrap for HidePrefix {
    fn name(&self) -> &'static str {
        "hide_prefix"
    }

    fn request(&self, _: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        match behind_prefix(query.key) {
            (b"", _) => Wrapped::Pass,
            (_, b"") => Wrapped::Fail(Outcome::ClientError, "bad key".into()),
            _ => Wrapped::Hide,
        }
    }

    fn why(&self) -> String {
        "the routes below look at the key without its routing prefix".into()
    }
}

/// What is below gets the key without a hidden prefix.
#[derive(Debug)]
pub(in crate::route) struct BareKey;

impl Wrap for BareKey {
    fn name(&self) -> &'static str {
        "bare_key"
    }

    fn request(&self, request: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        match request.key.is_empty() {
            true => Wrapped::Pass,
            false => Wrapped::Bare(query.key.to_vec()),
        }
    }

    fn changes_key(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        "the key without its routing prefix".into()
    }
}
