//! tap: passes requests through, and lets those who watch see some of them. No configuration has it: it stands
//! before the first route of each listener, and requests come by it only while somebody watches.

use std::sync::Arc;

use proxima_wire::message::Request;

use super::Random;
use crate::{
    micros::Micros,
    route::{
        Answer,
        samples::{Sample, Samples},
        tree::{Query, Watched, Wrap, Wrapped},
    },
};

/// What stands before the routes of one listener.
#[derive(Debug)]
pub(in crate::route) struct Tap {
    pub(in crate::route) listener: u16,
    pub(in crate::route) samples: Arc<Samples>,
}

impl Wrap for Tap {
    fn name(&self) -> &'static str {
        "tap"
    }

    fn request(&self, _: &Request, _: &[u8], query: &Query<'_>, random: &mut Random) -> Wrapped {
        match self.samples.wants(query.key, random) {
            true => Wrapped::Watch,
            false => Wrapped::Pass,
        }
    }

    fn names_client(&self) -> bool {
        true
    }

    fn reads_texts(&self) -> bool {
        true
    }

    fn reply(&self, watched: &Watched<'_>, answer: &Answer<'_>) -> Micros {
        let text = watched.text.as_ref();
        self.samples.put(Sample {
            listener: self.listener,
            client: watched.client,
            command: watched.command,
            class: watched.class,
            key: text.map_or(watched.key, |text| text.text.as_bytes()).into(),
            member: text.and_then(|text| text.member),
            outcome: answer.outcome(),
            took: watched.took,
            weight: self.samples.weight(),
        });
        Micros::ZERO
    }

    fn why(&self) -> String {
        "somebody watches".into()
    }
}
