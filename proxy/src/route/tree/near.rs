//! The node `near`, and which of its rules a request falls under.

use std::sync::Arc;

use proxima_wire::message::{Class, Request};

use super::{Node, Tree};
use crate::{
    config::schema::NearKeys,
    near::{HttpOrigin, Near, Rule},
    route::{NodeId, glob::glob},
};

/// The node `near`.
pub struct NearNode {
    /// The near cache of the process.
    pub near: Arc<Near>,
    /// The rules; the first that is for a request counts.
    pub rules: Vec<NearRuleFor>,
    /// Where requests go that are not answered here. With an origin it is an error: it takes what no value
    /// can answer.
    pub child: NodeId,
    /// The HTTP origin that values come from. `None`: replies come from the child.
    pub origin: Option<Arc<HttpOrigin>>,
}

/// A rule, with what it is for.
pub struct NearRuleFor {
    /// The rule.
    pub rule: Arc<Rule>,
    /// The keys that it is for.
    pub keys: NearKeys,
    /// The numbers of the commands that it is for; empty: all.
    pub commands: Box<[u16]>,
}

impl NearRuleFor {
    fn is_for_key(&self, key: &[u8]) -> bool {
        match &self.keys {
            NearKeys::All => true,
            NearKeys::Prefix(prefix) => key.starts_with(prefix.as_bytes()),
            NearKeys::Pattern(pattern) => glob(pattern.as_bytes(), key),
        }
    }

    fn is_for(&self, command: u16, key: &[u8]) -> bool {
        self.is_for_key(key) && (self.commands.is_empty() || self.commands.contains(&command))
    }
}

impl NearNode {
    /// Is each key of this request asked for or changed by itself?
    pub(in crate::route) fn parts(&self, request: &Request, key: &[u8]) -> bool {
        let rule = || self.rule(request.command, key);
        let is_kept = || request.class == Class::Read && rule().is_some_and(|rule| rule.is_on());
        self.origin.is_some() || is_kept()
    }

    /// The rule for this request. `None`: it passes.
    #[inline]
    pub fn rule(&self, command: u16, key: &[u8]) -> Option<&Arc<Rule>> {
        let found = self.rules.iter().find(|rule| rule.is_for(command, key))?;
        Some(&found.rule)
    }
}

/// Whether a rule is for a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Takes {
    /// It is.
    Key,
    /// This one, which stands before it, takes the key.
    ByOther(String),
    /// It is not.
    Not,
}

impl Tree {
    /// Whether the rule of this name is for this key.
    pub fn near_takes(&self, rule: &str, key: &[u8]) -> Takes {
        let nodes = self.all().filter_map(|(_, node)| match node {
            Node::Near(near) => Some(near),
            _ => None,
        });
        for near in nodes {
            let mut before: Vec<Box<str>> = Vec::new();
            for own in near.rules.iter().filter(|own| own.is_for_key(key)) {
                match (*own.rule.name == *rule, before.first()) {
                    (true, None) => return Takes::Key,
                    (true, Some(other)) => return Takes::ByOther(other.to_string()),
                    (false, _) if own.commands.is_empty() => before.push(own.rule.name.clone()),
                    (false, _) => {}
                }
            }
        }
        Takes::Not
    }
}
