//! round_robin: the children in turn, without ejected members. Each worker counts by itself.

use std::cell::Cell;

use super::Random;
use crate::{
    config::routes::{self, Spec},
    micros::Micros,
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `round_robin`.
#[derive(Debug, Default)]
pub(in crate::route) struct RoundRobin {
    /// The number of the next child, up to the number of children.
    turn: Cell<usize>,
}

impl Choose for RoundRobin {
    fn name(&self) -> &'static str {
        routes::RoundRobin::NAME
    }

    fn choose(&self, _: &Query<'_>, children: &Children<'_>, _: &mut Random) -> usize {
        let first = self.turn.get() % children.len().max(1);
        let chosen = (0..children.len())
            .map(|step| (first + step) % children.len())
            .find(|&index| children.is_up(index))
            .unwrap_or(first);
        self.turn.set(chosen + 1);
        chosen
    }

    fn varies(&self, _: &Query<'_>) -> bool {
        true
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, _: &Query<'_>, children: &Children<'_>, chosen: usize) -> String {
        format!("turn {} of {}", chosen + 1, children.len())
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::RoundRobin {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let nodes = maker.children(children)?;
        Ok(maker.one_of(RoundRobin::default(), nodes))
    }
}
