//! nearest: the nearest member that may be asked; the next one while it is ejected. The children are put in
//! order of distance when the tree is built, and for each place of clients when the node agent reports
//! something new. The walk then only looks at the children's states.

use std::{cell::RefCell, sync::Arc};

use super::Random;
use crate::{
    config::routes::{self, Spec},
    members::Locality,
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker},
        order::Order,
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `nearest`.
#[derive(Debug, Default)]
pub(in crate::route) struct Nearest {
    /// The order by the client's locality, while a node agent is followed.
    order: RefCell<Option<Arc<Order>>>,
}

impl Choose for Nearest {
    fn name(&self) -> &'static str {
        routes::Nearest::NAME
    }

    #[inline]
    fn choose(&self, query: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        if query.locality != Locality::NONE
            && let Some(order) = self.order.borrow().as_deref()
        {
            let mut nearest = order.of(query.locality);
            let first = order.of(query.locality).next().unwrap_or(0);
            return nearest.find(|&index| children.is_up(index)).unwrap_or(first);
        }
        (0..children.len())
            .find(|&index| children.is_up(index))
            .unwrap_or(0)
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn set_order(&self, order: Option<&Arc<Order>>) {
        *self.order.borrow_mut() = order.cloned();
    }

    fn is_by_distance(&self) -> bool {
        true
    }

    fn why(&self, query: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        let Some(member) = children.member(chosen) else {
            return "the first of its children".into();
        };
        let order = self.order.borrow();
        let order = order.as_deref().filter(|_| query.locality != Locality::NONE);
        let asked: Vec<usize> = match order {
            Some(order) => order.of(query.locality).collect(),
            None => (0..children.len()).collect(),
        };
        let ranked = order.and_then(|order| order.rank(query.locality, chosen));
        let distance = ranked.map_or(member.distance, |ranked| ranked.rank.distance);
        let mut text = format!("distance {}", distance.name());
        let nowhere = |index: &usize| {
            children
                .member(*index)
                .is_some_and(|member| member.socket.is_none())
        };
        let passed = asked.iter().take_while(|&&index| index != chosen);
        match passed.filter(|passed| !nowhere(passed)).count() {
            0 => {}
            passed => text.push_str(&format!("; {passed} nearer ejected")),
        }
        match (0..children.len()).filter(nowhere).count() {
            0 => {}
            lost => text.push_str(&format!("; {lost} passed by, as their names do not resolve")),
        }
        text
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::Nearest {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let mut nodes = maker.children(children)?;
        nodes.sort_by_key(|&node| maker.distance(node));
        maker.warn_if_none_is_local(children, &nodes);
        Ok(match nodes[..] {
            [only] => only,
            _ => maker.choose(Nearest::default(), nodes),
        })
    }
}
