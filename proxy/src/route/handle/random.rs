//! random: any child, and a live one where there is one.

use crate::{
    config::routes::{self, Spec},
    micros::Micros,
    random::Random,
    route::{
        compile::{Build, CompileError, Maker},
        tree::{Children, Choose, NodeId, Query},
    },
};

/// The route `random`.
#[derive(Debug)]
pub(in crate::route) struct RandomChild;

impl Choose for RandomChild {
    fn name(&self) -> &'static str {
        routes::Random::NAME
    }

    fn choose(&self, _: &Query<'_>, children: &Children<'_>, random: &mut Random) -> usize {
        let first = random.below(children.len());
        let live = (0..children.len())
            .map(|step| (first + step) % children.len())
            .find(|&i| children.is_up(i));
        live.unwrap_or(first)
    }

    fn varies(&self, _: &Query<'_>) -> bool {
        true
    }

    fn looks_at_key(&self, _: Micros) -> bool {
        false
    }

    fn why(&self, _: &Query<'_>, children: &Children<'_>, _: usize) -> String {
        format!("one of {} by chance", children.len())
    }
}

impl<'a> Build<'a, &'a routes::Children> for routes::Random {
    fn build(
        &'a self,
        children: &'a routes::Children,
        maker: &mut Maker<'_, 'a>,
    ) -> Result<NodeId, CompileError> {
        let nodes = maker.children(children)?;
        Ok(maker.one_of(RandomChild, nodes))
    }
}
