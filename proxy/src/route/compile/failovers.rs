//! Routes that go on to the next child after an error.

use super::maker::Maker;
use crate::{
    config::schema::FailoverRules,
    route::{
        handle::{Failover, Insert, Place, Tokens},
        tree::NodeId,
    },
};

/// The end of keys that go to another child than the first, where that is asked for.
const TAG: &[u8] = b":failover=1";

impl Maker<'_, '_> {
    /// A failover over these children.
    pub(super) fn failover(&mut self, mut children: Vec<NodeId>, rules: &FailoverRules) -> NodeId {
        if rules.tag {
            for child in children.iter_mut().skip(1) {
                let insert = Insert {
                    place: Place::BehindStop,
                    text: TAG.to_vec(),
                    of: "failover_tag",
                };
                *child = self.wrap(insert, *child);
            }
        }
        let handle = Failover {
            errors: rules.errors.clone(),
            limit: rules.limit.clone().map(Tokens::new),
        };
        self.attempt(handle, children)
    }
}
