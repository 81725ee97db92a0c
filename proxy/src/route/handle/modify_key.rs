//! modify_key: puts a prefix before the key (or in place of another prefix), and a suffix after it.

use proxima_wire::message::{Outcome, Request};

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{NodeId, Query, Wrap, Wrapped},
    },
};

/// The route `modify_key`.
#[derive(Debug)]
pub(in crate::route) struct ModifyKey {
    /// The prefix of every key behind this route.
    pub(in crate::route) ensure_prefix: Vec<u8>,
    /// The prefix that `ensure_prefix` replaces; `None`: it replaces no prefix.
    pub(in crate::route) replace_prefix: Option<Vec<u8>>,
    /// `ensure_prefix` overwrites the key's first bytes.
    pub(in crate::route) in_place: bool,
    /// The suffix that is added to every key.
    pub(in crate::route) suffix: Vec<u8>,
}

impl ModifyKey {
    fn apply(&self, key: &[u8]) -> Vec<u8> {
        let mut changed = Vec::with_capacity(key.len() + self.ensure_prefix.len() + self.suffix.len());
        match self
            .replace_prefix
            .as_deref()
            .and_then(|prefix| key.strip_prefix(prefix))
        {
            Some(rest) => {
                changed.extend_from_slice(&self.ensure_prefix);
                changed.extend_from_slice(rest);
            }
            None if key.starts_with(&self.ensure_prefix) => changed.extend_from_slice(key),
            None => {
                changed.extend_from_slice(&self.ensure_prefix);
                // A key that is shorter than the prefix is not overwritten.
                let overwritten = key.get(self.ensure_prefix.len()..).filter(|_| self.in_place);
                changed.extend_from_slice(overwritten.unwrap_or(key));
            }
        }
        changed.extend_from_slice(&self.suffix);
        changed
    }
}

impl Wrap for ModifyKey {
    fn name(&self) -> &'static str {
        routes::ModifyKey::NAME
    }

    fn request(&self, request: &Request, _: &[u8], query: &Query<'_>, _: &mut Random) -> Wrapped {
        if request.key.is_empty() {
            // It is about no key.
            return Wrapped::Pass;
        }
        if !request.more_keys.is_empty() {
            return Wrapped::Each;
        }
        let changed = self.apply(query.key);
        if changed == query.key {
            return Wrapped::Pass;
        }
        match query.protocol.check_key(request, &changed) {
            Ok(()) => Wrapped::Key(changed),
            Err(fault) => Wrapped::Fail(
                Outcome::LocalError,
                format!("ModifyKeyRoute: invalid key: invalid key: {fault}"),
            ),
        }
    }

    fn new_key(&self, key: &[u8]) -> Option<Vec<u8>> {
        Some(self.apply(key)).filter(|changed| changed != key)
    }

    fn changes_key(&self) -> bool {
        true
    }

    fn why(&self) -> String {
        format!(
            "prefix {:?}, suffix {:?}",
            self.ensure_prefix.escape_ascii().to_string(),
            self.suffix.escape_ascii().to_string()
        )
    }
}

impl<'a> Build<'a, &'a Route> for routes::ModifyKey {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = match self.routing_prefix.as_deref() {
            None => maker.node(child)?,
            Some("") => maker.with_prefix(None, child)?,
            prefix => maker.with_prefix(prefix, child)?,
        };
        let handle = ModifyKey {
            ensure_prefix: self.ensure_prefix.clone().into(),
            replace_prefix: self.replace_prefix.clone().map(Into::into),
            in_place: self.in_place,
            suffix: self.suffix.clone().into(),
        };
        Ok(maker.wrap(handle, child))
    }
}

#[cfg(test)]
mod tests {
    use super::ModifyKey;

    #[test]
    fn keys() {
        let route = |ensure: &str, replace: Option<&str>, in_place, suffix: &str| ModifyKey {
            ensure_prefix: ensure.into(),
            replace_prefix: replace.map(Into::into),
            in_place,
            suffix: suffix.into(),
        };
        let cases = [
            (route("a:", None, false, ""), "k", "a:k"),
            (route("a:", None, false, ""), "a:k", "a:k"),
            (route("a:", Some("b:"), false, ""), "b:k", "a:k"),
            (route("", Some("/r/c/"), false, ""), "/r/c/k", "k"),
            (route("a:", None, true, ""), "b:k", "a:k"),
            (route("a:", None, true, ""), "k", "a:k"),
            (route("a:", None, true, "s"), "bc", "a:s"),
            (route("a:", None, true, ""), "a:k", "a:k"),
            (route("", Some("a:"), false, "s"), "a:k", "ks"),
            (route("b:", Some("a:"), false, "s"), "b:k", "b:ks"),
            (route("b:", Some("a:"), false, ""), "k", "b:k"),
            (route("b:", Some(""), false, ""), "k", "b:k"),
            (route("", None, false, ":s"), "k", "k:s"),
        ];
        for (route, key, expected) in cases {
            assert_eq!(route.apply(key.as_bytes()), expected.as_bytes(), "{route:?}");
        }
    }
}
