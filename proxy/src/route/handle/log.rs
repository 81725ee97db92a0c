//! log: passes requests through, and writes one line to the log for each request and its outcome.

use proxima_wire::message::Request;

use super::Random;
use crate::route::Answer;
use crate::route::tree::{Query, Wrap, Wrapped};

/// The route `log`.
#[derive(Debug)]
pub(in crate::route) struct Log;

impl Wrap for Log {
    fn name(&self) -> &'static str {
        "log"
    }

    fn request(&self, _: &Request, _: &[u8], _: &Query<'_>, _: &mut Random) -> Wrapped {
        Wrapped::Watch
    }

    fn reply(&self, key: &[u8], command: &'static str, answer: &Answer<'_>) {
        let outcome = answer.outcome();
        tracing::info!(command, key = %key.escape_ascii(), ?outcome, "request");
    }

    fn why(&self) -> String {
        "writes a line to the log".into()
    }
}
