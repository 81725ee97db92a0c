//! What the running configuration was read from.

use serde_json::{Map, Value};

use super::facts::Facts;

/// The files of the configuration, with the digests of their texts.
pub(super) fn sources(facts: &Facts<'_>) -> Value {
    let mut digests = facts.proxy.digests().into_iter();
    let mut all = Map::new();
    if let Some((path, digest)) = digests.next() {
        all.insert("mcrouter_config".to_owned(), digest.into());
        if facts.door.config_file.is_some() {
            all.insert("config_file".to_owned(), path.display().to_string().into());
        }
    }
    let others: Map<String, Value> = digests
        .map(|(path, digest)| (path.display().to_string(), digest.into()))
        .collect();
    if !others.is_empty() {
        all.insert("config_import".to_owned(), others.into());
    }
    all.into()
}
