//! strip_prefix: takes mcrouter's `/region/cluster/` off a key.

use proxima_wire::message::{Outcome, Request};

use super::{Random, hidden_prefix::prefix};
use crate::route::tree::{Query, Wrap, Wrapped};

/// The route `strip_prefix`.
#[derive(Debug)]
pub(in crate::route) struct StripPrefix;

impl Wrap for StripPrefix {
    fn name(&self) -> &'static str {
        "strip_prefix"
    }

    fn request(&self, _: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        let Some(prefix) = prefix(query.key) else {
            return Wrapped::Pass;
        };
        match &query.key[prefix.len()..] {
            b"" => Wrapped::Fail(Outcome::ClientError, "bad key".into()),
            rest => Wrapped::Key(rest.to_vec()),
        }
    }

    fn new_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        prefix(key).map(|prefix| key[prefix.len()..].to_vec())
    }

    fn changes_key(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        "the key without its routing prefix".into()
    }
}
