//! What clients of mcrouter's door ask the process: `stats` and its groups, `get __mcrouter__.…`; and the
//! files of statistics.
//!
//! Workers hand such requests to the control thread. It gathers the counters of all workers once for all
//! questions that wait, so that the answers fit together and many clients who ask cost little.

mod destinations;
mod expansion;
mod facts;
mod figures;
mod files;
mod groups;
mod handles;
mod json;
mod rates;
mod request;
mod results;
mod sources;

use std::{sync::Arc, time::Duration};

use proxima_wire::memcache::error;
use tokio::{
    sync::mpsc::UnboundedReceiver,
    time::{MissedTickBehavior, interval, sleep},
};

use self::{
    expansion::Expansion, facts::Facts, files::Files, groups::Group, rates::Rates, request::DoorRequest,
};
use crate::{
    client::Question,
    control::{LogControl, Proxy},
    frontdoor::mcrouter::Door,
    protocols::MCROUTER_ADMIN,
};

/// mcrouter's version.
const VERSION: &str = "1.0.0 mcrouter";

/// Time between two samples of the counters whose rates are told.
const SAMPLE: Duration = Duration::from_secs(5);

/// Questions that are answered with one gathering of the counters.
const BATCH: usize = 256;

/// Answers up to this size are made anew for each who asks; in bytes.
const SHORT: usize = 256;
/// Time between two batches.
const PAUSE: Duration = Duration::from_millis(1);

/// Answers questions, and writes the files, for as long as the process lives.
pub async fn serve(
    proxy: Arc<Proxy>,
    door: Arc<Door>,
    log: Option<Arc<dyn LogControl>>,
    mut questions: UnboundedReceiver<Question>,
) {
    let mut rates = Rates::default();
    let files = Files::new(&door);
    let mut sample = interval(SAMPLE);
    let mut write = interval(files.interval());
    for timer in [&mut sample, &mut write] {
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
    }
    let mut expansion = Expansion::default();
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            _ = sample.tick() => rates.sample(figures::counters(&Facts::gather(&proxy, &door))),
            _ = write.tick(), if files.are_written() => files.write(&Facts::gather(&proxy, &door), &rates),
            count = questions.recv_many(&mut batch, BATCH) => {
                if count == 0 {
                    return;
                }
                let facts = Facts::gather(&proxy, &door);
                // With thousands of servers an answer takes milliseconds: all who ask the same get the same.
                let mut written: Vec<(Vec<u8>, Arc<[u8]>)> = Vec::new();
                for question in batch.drain(..) {
                    let line = question.message.trim_ascii();
                    let Some(group) = line.strip_prefix(b"stats").map(<[u8]>::trim_ascii) else {
                        let answer = value(line, &facts, log.as_deref(), &mut expansion);
                        proxy.answer(&question, answer.into());
                        continue;
                    };
                    let answer = match written.iter().find(|(known, _)| known == group) {
                        Some((_, answer)) => Arc::clone(answer),
                        None => {
                            let answer: Arc<[u8]> = stats(group, &facts, &rates).into();
                            if answer.len() > SHORT {
                                written.push((group.to_vec(), Arc::clone(&answer)));
                            }
                            answer
                        }
                    };
                    proxy.answer(&question, answer);
                }
                // Whatever else the control thread does has its turn before the next questions.
                sleep(PAUSE).await;
            }
        }
    }
}

/// The answer to a `get`.
fn value(line: &[u8], facts: &Facts<'_>, log: Option<&dyn LogControl>, expansion: &mut Expansion) -> Vec<u8> {
    let key = line.strip_prefix(b"get").unwrap_or_default().trim_ascii();
    let asked = key.strip_prefix(MCROUTER_ADMIN).unwrap_or_default();
    let value = DoorRequest::of(asked).answer(facts, log, expansion);
    let mut out = Vec::with_capacity(key.len() + value.len() + 40);
    out.extend_from_slice(b"VALUE ");
    out.extend_from_slice(key);
    out.extend_from_slice(format!(" 0 {}\r\n", value.len()).as_bytes());
    out.extend_from_slice(&value);
    out.extend_from_slice(b"\r\nEND\r\n");
    out
}

/// The answer to a `stats`.
fn stats(group: &[u8], facts: &Facts<'_>, rates: &Rates) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = |name: &str, value: &str| {
        out.extend_from_slice(format!("STAT {name} {value}\r\n").as_bytes());
    };
    match group {
        b"version" => row("mcrouter-version", VERSION),
        b"servers" => facts.destinations().each(&mut row),
        b"suspect_servers" => facts.destinations().each_suspect(&mut row),
        _ => match Group::named(group) {
            Some(group) => figures::each(group, facts, rates, &mut row),
            None => return error::BAD_STATS.to_vec(),
        },
    }
    out.extend_from_slice(b"END\r\n");
    out
}
