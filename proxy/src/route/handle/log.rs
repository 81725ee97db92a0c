//! log: passes requests through, and writes one line to the log for each request and its outcome.

use proxima_wire::message::Request;
use tracing::field::display;

use super::Random;
use crate::{
    config::{
        routes::{self, Spec},
        schema::Route,
    },
    micros::Micros,
    route::{
        Answer,
        compile::{Build, CompileError, Maker},
        tree::{NodeId, Query, Watched, Wrap, Wrapped},
    },
};

/// The route `log`.
#[derive(Debug)]
pub(in crate::route) struct Log;

impl Wrap for Log {
    fn name(&self) -> &'static str {
        routes::Log::NAME
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        Wrapped::Watch
    }

    fn names_client(&self) -> bool {
        true
    }

    fn reply(&self, watched: &Watched<'_>, answer: &Answer<'_>) -> Micros {
        let Watched {
            key, command, client, ..
        } = watched;
        let (outcome, client) = (answer.outcome(), client.map(display));
        tracing::info!(command, key = %key.escape_ascii(), ?outcome, client, "request");
        Micros::ZERO
    }

    fn why(&self) -> String {
        "writes a line to the log".into()
    }
}

impl<'a> Build<'a, &'a Route> for routes::Log {
    fn build(&'a self, child: &'a Route, maker: &mut Maker<'_, 'a>) -> Result<NodeId, CompileError> {
        let child = maker.node(child)?;
        Ok(maker.wrap(Log, child))
    }
}
