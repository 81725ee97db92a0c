//! Puts a text into the key at a place that the key's form gives. The routes that keep several copies of a
//! key under different names use it: `shard_split`, `key_split`, and `failover` with a tag.

use proxima_wire::{
    hash::{routing_key, shard},
    message::Request,
};

use super::Random;
use crate::route::tree::{Query, Wrap, Wrapped};

/// The place of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::route) enum Place {
    /// Behind the number between the first two colons.
    Shard,
    /// Before the first `|#|`, or else at the end.
    Stop,
    /// At the end of keys that have a `|#|`.
    BehindStop,
}

/// Puts this text into each key.
#[derive(Debug)]
pub(in crate::route) struct Insert {
    /// The place of the text.
    pub(in crate::route) place: Place,
    /// The text.
    pub(in crate::route) text: Vec<u8>,
    /// The name of the route that needs it.
    pub(in crate::route) of: &'static str,
}

impl Insert {
    /// The position of the text in this key; `None`: it gets none.
    fn position(&self, key: &[u8]) -> Option<usize> {
        let stop = routing_key(key, true).len();
        match self.place {
            Place::Shard => shard(&key[..stop]).map(|shard| shard.end),
            Place::Stop => Some(stop),
            Place::BehindStop => (stop < key.len()).then_some(key.len()),
        }
    }

    fn apply(&self, key: &[u8]) -> Option<Vec<u8>> {
        let at = self.position(key)?;
        Some([&key[..at], &self.text, &key[at..]].concat())
    }
}

impl Wrap for Insert {
    fn name(&self) -> &'static str {
        self.of
    }

    fn request(&self, request: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        if !request.more_keys.is_empty() {
            return Wrapped::Each;
        }
        let changed = self.apply(query.key);
        let fits = |key: &Vec<u8>| query.protocol.check_key(request, key).is_ok();
        changed.filter(fits).map_or(Wrapped::Pass, Wrapped::Key)
    }

    fn new_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        self.apply(key)
    }

    fn changes_key(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        let place = match self.place {
            Place::Shard => "behind the shard",
            Place::Stop => "before `|#|` or at the end",
            Place::BehindStop => "at the end, if there is a `|#|`",
        };
        format!("`{}` {place}", self.text.escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::{Insert, Place};

    #[test]
    fn the_text_stands_where_the_form_of_the_key_says() {
        let insert = |place, text: &str| Insert {
            place,
            text: text.into(),
            of: "test",
        };
        for (insert, key, expected) in [
            (insert(Place::Shard, "aa"), "p:12:rest", Some("p:12aa:rest")),
            (insert(Place::Shard, "aa"), "p:12", None),
            (insert(Place::Shard, "aa"), "p|#|a:b:c", None),
            (insert(Place::Stop, "::2"), "key", Some("key::2")),
            (insert(Place::Stop, "::2"), "key|#|x", Some("key::2|#|x")),
            (insert(Place::BehindStop, ":t"), "key|#|x", Some("key|#|x:t")),
            (insert(Place::BehindStop, ":t"), "key", None),
        ] {
            let expected = expected.map(|key| key.as_bytes().to_vec());
            assert_eq!(insert.apply(key.as_bytes()), expected, "{key}");
        }
    }
}
