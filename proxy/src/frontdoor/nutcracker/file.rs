//! The whole file: a mapping of pools.

use super::{base::BaseConfig, pool::pool};
use crate::config::{
    Diagnostic,
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
