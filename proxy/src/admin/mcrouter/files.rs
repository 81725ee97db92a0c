//! The files of statistics: each is replaced as a whole, so that a reader never finds half of one. A thread of
//! their own writes them, for a disk may hang.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
    time::Duration,
};

use serde_json::{Map, Value};

use super::{
    facts::Facts,
    figures::{self, average},
    groups::Group,
    json::pretty,
    rates::Rates,
    results::ERRORS,
    sources::sources,
};
use crate::frontdoor::mcrouter::Door;

/// What is to be written: the ends of the names, and the texts.
type Texts = [(&'static str, String); 3];

/// Where the files are.
pub(super) struct Files {
    interval: Duration,
    /// The beginning of their names, and of the names in them.
    prefix: String,
    /// Takes the next texts, unless the thread still writes the last ones. `None`: no files are written.
    writer: Option<SyncSender<Texts>>,
}

impl Files {
    pub(super) fn new(door: &Door) -> Self {
        let prefix = format!("libmcrouter.{}.{}", door.service, door.router);
        let start = |(root, _): &(PathBuf, Duration)| {
            let (writer, texts) = sync_channel(0);
            let (root, prefix) = (root.clone(), prefix.clone());
            let thread = thread::Builder::new().name("stats-files".into());
            match thread.spawn(move || write_all(&root, &prefix, &texts)) {
                Ok(_) => Some(writer),
                Err(error) => {
                    tracing::warn!(%error, "no files of statistics are written");
                    None
                }
            }
        };
        Self {
            interval: door
                .files
                .as_ref()
                .map_or(Duration::MAX, |(_, interval)| *interval),
            writer: door.files.as_ref().and_then(start),
            prefix,
        }
    }

    /// Time between two writes.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    pub(super) fn are_written(&self) -> bool {
        self.writer.is_some()
    }

    /// Has all of them written.
    pub(super) fn write(&self, facts: &Facts<'_>, rates: &Rates) {
        let Some(writer) = &self.writer else { return };
        let values = [
            ("stats", self.statistics(facts, rates)),
            ("startup_options", options(facts.door)),
            ("config_sources_info", sources(facts)),
        ];
        // While the disk is slow, the files are as old as they are.
        let _ = writer.try_send(values.map(|(name, value)| (name, pretty(&value) + "\n")));
    }

    fn statistics(&self, facts: &Facts<'_>, rates: &Rates) -> Value {
        let mut all = Map::new();
        let mut add = |name: &str, value: Value| {
            all.insert(format!("{}.{name}", self.prefix), value);
        };
        figures::each(Group::FILES, facts, rates, &mut |name, text| {
            let value = serde_json::from_str(text).unwrap_or_else(|_| text.into());
            add(name, value);
        });
        for prefix in &facts.door.pools {
            for (name, value) in pool(prefix, facts) {
                add(&format!("{prefix}.{name}"), value);
            }
        }
        Value::Object(all)
    }
}

/// The figures of all pools whose names begin so.
fn pool(prefix: &str, facts: &Facts<'_>) -> [(&'static str, Value); 5] {
    let members = facts
        .members
        .iter()
        .filter(|member| member.pool.name.starts_with(prefix));
    let counts = members.filter_map(|member| facts.metrics.members.get(member.id.0 as usize));
    let (mut replies, mut unanswered, mut errors, mut lanes, mut micros) = (0, 0, 0, 0, 0);
    for count in counts {
        replies += count.outcomes.replies();
        unanswered += count.outcomes.unanswered();
        errors += count.outcomes.sum(ERRORS);
        lanes += count.lanes;
        micros += count.micros;
    }
    // How long clients wait is not told apart by pool.
    let total = match replies {
        0 => 0.0,
        _ => average(&facts.metrics.latency),
    };
    [
        ("requests.sum", (replies + unanswered).into()),
        ("final_result_error.sum", errors.into()),
        ("connections", lanes.into()),
        ("duration_us.avg", (micros as f64 / replies.max(1) as f64).into()),
        ("total_duration_us.avg", total.into()),
    ]
}

fn options(door: &Door) -> Value {
    let mut options: BTreeMap<String, Value> = BTreeMap::new();
    for (name, value) in &door.options {
        options.insert(name.clone(), value.as_str().into());
    }
    options.insert("pid".to_owned(), std::process::id().into());
    options.insert("version".to_owned(), super::VERSION.into());
    options.into_iter().collect()
}

fn write_all(root: &Path, prefix: &str, texts: &Receiver<Texts>) {
    let mut fails = false;
    for texts in texts {
        let written = write(root, prefix, &texts);
        if let Err(error) = &written
            && !fails
        {
            tracing::warn!(path = %root.display(), %error, "the files of statistics cannot be written");
        }
        fails = written.is_err();
    }
}

fn write(root: &Path, prefix: &str, texts: &Texts) -> io::Result<()> {
    fs::create_dir_all(root)?;
    for (name, text) in texts {
        let path = root.join(format!("{prefix}.{name}"));
        let new = root.join(format!("{prefix}.{name}.new"));
        fs::write(&new, text)?;
        fs::rename(new, path)?;
    }
    Ok(())
}
