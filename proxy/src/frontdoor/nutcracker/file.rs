//! The whole file: a mapping of pools.

use std::collections::BTreeSet;

use super::{base::BaseConfig, pool::pool, settings::PASSWORD};
use crate::config::{
    Diagnostic, Place,
    document::{Node, Value},
    reading::Reading,
    schema::Config,
};

/// Reads all pools, and adds what the command line gives. Mistakes other than the first are recorded.
pub(super) fn read(root: &Node, base: &BaseConfig, cx: &mut Reading) -> Result<Config, Diagnostic> {
    let pools = match &root.value {
        Value::Map(pools) if !pools.is_empty() => pools,
        _ => {
            return Err(cx
                .expected(root, "pools")
                .with_remedy("begin each pool with its name and a colon, and write its keys below"));
        }
    };
    let read = pools.iter().map(|(name, node)| {
        if name.text.is_empty() {
            return Err(cx.refuse(name.at, "a pool without a name"));
        }
        let site = cx.site(name.at);
        cx.index.pools.insert(name.text.clone(), site);
        cx.within(&*name.text, |cx| pool(&name.text, node, base.all_commands(), cx))
            .map(|read| (name.text.clone(), read))
    });
    let read: Vec<_> = read.collect();
    let mut config = Config {
        listeners: Vec::with_capacity(read.len()),
        ..base.base.clone()
    };
    for (name, (listener, pool)) in cx.all(read)? {
        config.listeners.push(listener);
        config.pools.insert(name, pool);
    }
    base.add_listeners(&mut config, root, cx);
    Ok(config)
}

/// The places of all passwords.
pub(super) fn secrets<'a>(root: &'a Node) -> BTreeSet<Place> {
    let entries = |value: &'a Value| match value {
        Value::Map(entries) => entries.iter(),
        Value::Scalar { .. } | Value::List(_) => [].iter(),
    };
    entries(&root.value)
        .flat_map(|(_, pool)| entries(&pool.value))
        .filter(|(key, _)| key.text == PASSWORD)
        .map(|(_, password)| password.at)
        .collect()
}
