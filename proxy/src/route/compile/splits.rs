//! Routes that move keys, or keep several copies of them under different names.

use std::{collections::BTreeMap, time::Duration};

use super::{CompileError, maker::Maker};
use crate::{
    config::schema::{Route, ShardCopies},
    micros::Micros,
    route::{
        handle::{Fill, FirstHit, Insert, KeySplit, Migrate, Place, ShardSplit, Split, gather_name},
        tree::{Fan, Node, NodeId, Wait},
    },
};

/// Commands that store a value whatever is there.
const STORES: [&str; 3] = ["set", "ms", "SET"];

impl<'a> Maker<'_, 'a> {
    pub(super) fn fan(&mut self, handle: impl Fan + 'static, children: Vec<NodeId>) -> NodeId {
        self.push(Node::Fan {
            handle: Box::new(handle),
            children,
        })
    }

    pub(super) fn gather_of(&mut self, wait: Wait, children: Vec<NodeId>) -> NodeId {
        self.push(Node::Gather {
            name: gather_name(wait),
            wait,
            children,
        })
    }

    pub(super) fn migrate(
        &mut self,
        from: &'a Route,
        to: &'a Route,
        start: u64,
        interval: Duration,
    ) -> Result<NodeId, CompileError> {
        let (from, to) = (self.node(from)?, self.node(to)?);
        let both = self.gather_of(Wait::All, vec![from, to]);
        let mut children = vec![from, to, both];
        let lease_set = self.protocol.command("lease-set");
        if lease_set.is_some() {
            children.push(self.script(Fill, vec![to, from])?);
        }
        let handle = Migrate {
            start: Micros::secs(start),
            interval,
            lease_set,
        };
        Ok(self.choose(handle, children))
    }

    pub(super) fn shard_split(
        &mut self,
        child: &'a Route,
        splits: &BTreeMap<String, ShardCopies>,
    ) -> Result<NodeId, CompileError> {
        let child = self.node(child)?;
        let most = splits.values().map(|split| split.copies.max(split.before)).max();
        let mut children = vec![child];
        for copy in 1..most.unwrap_or(1) as usize {
            let insert = Insert {
                place: Place::Shard,
                text: ShardSplit::letters(copy),
                of: "shard_split",
            };
            children.push(self.wrap(insert, child));
        }
        let split = |split: &ShardCopies| Split {
            copies: [split.before as usize, split.copies as usize],
            start: Micros::secs(split.start),
            period: split.period,
            all_deletes: split.all_deletes,
        };
        let splits = splits
            .iter()
            .map(|(shard, copies)| (shard.clone().into_bytes(), split(copies)));
        let handle = ShardSplit {
            splits: splits.collect(),
            host: self.host_number(""),
        };
        Ok(self.fan(handle, children))
    }

    pub(super) fn key_split(
        &mut self,
        child: &'a Route,
        copies: u32,
        all_sync: bool,
        first_hit: bool,
    ) -> Result<NodeId, CompileError> {
        let child = self.node(child)?;
        let mut children = vec![child];
        for copy in 1..copies {
            let insert = Insert {
                place: Place::Stop,
                text: format!("::{copy}").into(),
                of: "key_split",
            };
            children.push(self.wrap(insert, child));
        }
        let stores = STORES.iter().filter(|_| all_sync);
        let handle = KeySplit {
            copies,
            own: (self.host_number("") % u64::from(copies.max(1))) as u32,
            all: stores.filter_map(|name| self.protocol.command(name)).collect(),
        };
        let one = self.fan(handle, children.clone());
        if !first_hit {
            return Ok(one);
        }
        let all = self.gather_of(Wait::Hit, children);
        let own = ["lease-get", "metaget"];
        let own = own
            .iter()
            .filter_map(|name| self.protocol.command(name))
            .collect();
        Ok(self.choose(FirstHit { own }, vec![one, all]))
    }
}
