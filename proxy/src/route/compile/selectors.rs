//! Routes that look at the command, or at the letters of the key.

use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use proxima_wire::message::Class;

use super::{
    CompileError,
    maker::{KeptPrefix, Maker},
};
use crate::{
    config::schema::{OfLogin, Route},
    route::{
        handle::{
            ByKeyPattern, ByLogin, ByOperation, ByPrefix, ByPrefixPattern, ByRoutingPrefix, CLASSES,
            HashStop, HidePrefix, Parts, StripPrefix,
        },
        tree::{Leaf, Node, NodeId},
    },
};

impl<'a> Maker<'_, 'a> {
    pub(super) fn by_operation(
        &mut self,
        operations: &'a BTreeMap<String, Route>,
        default: Option<&'a Route>,
    ) -> Result<NodeId, CompileError> {
        // As in mcrouter, an operation without a route gets the answer of an empty cache.
        let mut nodes = vec![match default {
            Some(route) => self.node(route)?,
            None => self.push(Node::Leaf(Leaf::Null)),
        }];
        let mut table = vec![[0; CLASSES]; self.protocol.commands().len()];
        let mut named = Vec::new();
        for (name, route) in operations {
            nodes.push(self.node(route)?);
            let child = nodes.len() as u16 - 1;
            match (group(name), self.protocol.command(name)) {
                (Some(class), _) => table
                    .iter_mut()
                    .for_each(|children| children[class as usize] = child),
                // Single commands are set last, so that they win over their group.
                (None, Some(command)) => named.push((command, child)),
                (None, None) => return Err(CompileError::Operation(name.clone())),
            }
        }
        for (command, child) in named {
            if let Some(children) = table.get_mut(usize::from(command)) {
                children.fill(child);
            }
        }
        Ok(self.choose(ByOperation { table: table.into() }, nodes))
    }

    pub(super) fn by_routing_prefix(
        &mut self,
        routes: &'a BTreeMap<String, Route>,
        default: &str,
        takes_unknown: bool,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = Vec::new();
        // The routes for prefixes of none of them.
        let mut by_pattern = Vec::new();
        let mut same = Vec::new();
        for (prefix, route) in routes {
            // A server that keeps prefixes gets that of the key.
            let plain = self.node(route)?;
            let with_prefix = match self.keeps_prefixes() {
                true => self.with_prefix(Some(prefix), route)?,
                false => plain,
            };
            let strip = self.wrap(StripPrefix, with_prefix);
            let first = routes.values().position(|other| other == route);
            same.push(first.unwrap_or(by_pattern.len()));
            nodes.extend([plain, strip]);
            by_pattern.push(match self.keeps_prefixes() {
                true => self.with_asked_prefix(route)?,
                false => strip,
            });
        }
        let prefixes: Vec<Vec<u8>> = routes.keys().map(|prefix| prefix.as_bytes().to_vec()).collect();
        let default = prefixes
            .iter()
            .position(|prefix| prefix == default.as_bytes())
            .ok_or_else(|| CompileError::Unknown(default.into()))?;
        by_pattern.push(self.push(Node::Leaf(Leaf::Error("RootRoute: No rh found".into()))));
        let several = ByPrefixPattern {
            prefixes: prefixes.clone(),
            same,
            default,
            takes_unknown,
        };
        nodes.push(self.fan(several, by_pattern));
        Ok(self.choose(ByRoutingPrefix { prefixes, default }, nodes))
    }

    /// Does any server keep the routing prefix of its keys?
    fn keeps_prefixes(&self) -> bool {
        let mut pools = self.compiler.config.pools.values();
        pools.any(|pool| pool.keep_routing_prefix)
    }

    /// The route for keys that servers get with this prefix, if they keep it.
    pub(super) fn with_prefix(
        &mut self,
        prefix: Option<&str>,
        route: &'a Route,
    ) -> Result<NodeId, CompileError> {
        let kept = KeptPrefix {
            given: prefix.filter(|_| self.keeps_prefixes()).map(Arc::from),
            is_hidden: self.prefix.is_hidden,
            is_asked: false,
        };
        let outer = std::mem::replace(&mut self.prefix, kept);
        let made = self.node(route);
        self.prefix = outer;
        made
    }

    /// The route for keys whose prefix servers get as it was asked for, if they keep it.
    fn with_asked_prefix(&mut self, route: &'a Route) -> Result<NodeId, CompileError> {
        let kept = KeptPrefix {
            given: None,
            is_hidden: true,
            is_asked: true,
        };
        let outer = std::mem::replace(&mut self.prefix, kept);
        let made = self.node(route);
        self.prefix = outer;
        Ok(self.wrap(HidePrefix, made?))
    }

    pub(super) fn by_prefix(
        &mut self,
        prefixes: &'a BTreeMap<String, Route>,
        default: Option<&'a Route>,
    ) -> Result<NodeId, CompileError> {
        let mut sorted: Vec<_> = prefixes.iter().collect();
        sorted.sort_by_key(|(prefix, _)| Reverse(prefix.len()));
        let mut nodes = Vec::new();
        let mut table = Vec::new();
        for (prefix, route) in sorted {
            table.push((prefix.as_bytes().to_vec(), nodes.len()));
            nodes.push(self.node(route)?);
        }
        nodes.push(self.default(default, "no route for this key's prefix")?);
        let handle = ByPrefix {
            prefixes: table,
            default: nodes.len() - 1,
        };
        Ok(self.choose(handle, nodes))
    }

    pub(super) fn by_login(
        &mut self,
        of: OfLogin,
        routes: &'a BTreeMap<String, Route>,
        default: Option<&'a Route>,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = Vec::new();
        let mut names = BTreeMap::new();
        for (name, route) in routes {
            names.insert(name.as_bytes().to_vec(), nodes.len());
            nodes.push(self.node(route)?);
        }
        nodes.push(self.default(default, &format!("no route for this client's {}", of.noun()))?);
        let default = nodes.len() - 1;
        Ok(self.choose(ByLogin { of, names, default }, nodes))
    }

    /// The route `child`, in which every choice looks at these parts of the key alone.
    pub(super) fn key_part(&mut self, child: &'a Route, parts: Parts) -> Result<NodeId, CompileError> {
        let narrower = [&self.parts[..], &[parts]].concat();
        let outer = std::mem::replace(&mut self.parts, narrower.into());
        let made = self.node(child);
        self.parts = outer;
        made
    }

    pub(super) fn hash_stop(
        &mut self,
        child: &'a Route,
        prefixes: &[String],
    ) -> Result<NodeId, CompileError> {
        let child = self.node(child)?;
        let refused = self.push(Node::Leaf(Leaf::Error(HashStop::REFUSED.into())));
        let prefixes = prefixes.iter().map(|prefix| prefix.as_bytes().to_vec());
        let handle = HashStop {
            prefixes: prefixes.collect(),
        };
        // It looks at the whole key, whatever its own children look at.
        Ok(self.push(Node::Choose {
            handle: Box::new(handle),
            children: vec![child, refused],
        }))
    }

    pub(super) fn by_key_pattern(
        &mut self,
        patterns: &'a [(String, Route)],
        default: Option<&'a Route>,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = Vec::new();
        for (_, route) in patterns {
            nodes.push(self.node(route)?);
        }
        nodes.push(self.default(default, "no route for this key")?);
        let patterns = patterns
            .iter()
            .map(|(pattern, _)| pattern.as_bytes().to_vec())
            .collect();
        Ok(self.choose(ByKeyPattern { patterns }, nodes))
    }
}

/// The class that a word for several commands names; `None`: it is no such word.
fn group(name: &str) -> Option<Class> {
    Some(match name {
        "read" => Class::Read,
        "write" => Class::Write,
        "delete" => Class::Delete,
        "arithmetic" => Class::Arithmetic,
        "touch" => Class::Touch,
        _ => return None,
    })
}
