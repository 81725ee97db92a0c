//! consistency: how fresh the reads below it are. Which word holds is known before a request walks the tree
//! (`RouteWords`), so that the node changes nothing: it is there for whoever asks for a way.

use proxima_wire::message::Request;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    route::{
        compile::{Build, CompileError, Maker},
        tree::{NodeId, Query, Wrap, Wrapped},
    },
};

/// The route `consistency`.
#[derive(Debug)]
struct Consistency {
    /// The word.
    word: &'static str,
}

impl Wrap for Consistency {
    fn name(&self) -> &'static str {
        routes::ConsistencyRoute::NAME
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        Wrapped::Pass
    }

    fn why(&self) -> String {
        format!(
            "reads are `{}` where neither the session nor a hint says otherwise",
            self.word
        )
    }
}

impl<'a> Build<'a, &'a Route> for routes::ConsistencyRoute {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        let word = self.level.name();
        Ok(maker.wrap(Consistency { word }, child))
    }
}
