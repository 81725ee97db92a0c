//! The near cache as operators see it.

use std::{collections::BTreeMap, sync::Arc};

use serde::{Deserialize, Serialize};

use super::{NearError, values_of};
use crate::{
    config::{
        near_settings::{shown, shown_size},
        schema::{Config, NearKeys, NearRule},
    },
    control::Proxy,
    metrics::{Metrics, NearRuleCounts},
    near::{Entries, Near, RemovalReason, Rule, RuleUsage, Rules},
    protocol::NearCounters,
    route::{near_settings, shown_key},
};

/// The near cache.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NearStatus {
    /// The most bytes that it takes.
    pub memory: u64,
    /// What the configuration says of that, where it says otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_configured: Option<String>,
    /// Is `memory` kept beyond the end of the process?
    pub memory_kept: bool,
    /// Bytes of all kept replies and what finds them.
    pub bytes: u64,
    /// Keys that have kept replies.
    pub keys: u64,
    /// The file of settings. `None`: none are kept.
    pub settings_file: Option<String>,
    /// The rules by name.
    pub rules: Vec<RuleStatus>,
}

/// One rule.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RuleStatus {
    /// Its name.
    pub name: String,
    /// The keys that it is for.
    pub keys: String,
    /// The commands that it is for; empty: all that can be kept.
    pub commands: Vec<String>,
    /// Is anything kept by it?
    pub on: bool,
    /// The settings in force, as a configuration has them.
    pub settings: BTreeMap<String, String>,
    /// What the configuration says, where it says otherwise.
    pub configured: BTreeMap<String, String>,
    /// The names of the settings that are kept beyond the end of the process.
    pub kept: Vec<String>,
    /// Kept replies.
    pub entries: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Requests that were answered from what is kept.
    pub hits: u64,
    /// Those of them that got a reply whose time was over.
    pub stale_hits: u64,
    /// Those of them that were told that there is nothing.
    pub negative_hits: u64,
    /// Requests that were the first to ask for what was not kept.
    pub misses: u64,
    /// Requests that waited for a reply that was under way.
    pub joined: u64,
    /// Requests that were sent to fetch a reply.
    pub fills: u64,
    /// Replies that were fetched and kept.
    pub stored: u64,
    /// Replies that were fetched and not kept, by reason.
    pub refused: BTreeMap<String, u64>,
    /// Requests that passed, by reason.
    pub passed: BTreeMap<String, u64>,
    /// Requests that got an old reply in place of an error.
    pub stood_for_errors: u64,
    /// Kept replies that went, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// The mean age of replies at hits, in seconds.
    pub age_at_hit: f64,
    /// The seconds of waiting for servers that hits have saved, all clients together.
    pub saved: f64,
}

/// A key that was asked for often.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NearTop {
    /// The rule.
    pub rule: String,
    /// The key. Bytes that are no printable ASCII are escaped.
    pub key: String,
    /// Bytes of its reply.
    pub bytes: usize,
    /// Seconds since it was kept.
    pub age: f64,
    /// The times that it was an answer.
    pub hits: u32,
}

/// The counts of replies that were fetched and not kept, by reason.
pub fn refused(counts: &NearRuleCounts) -> [(&'static str, u64); 6] {
    [
        ("changed", counts.refused_changed),
        ("off", counts.refused_off),
        ("too_large", counts.refused_large),
        ("not_asked_again", counts.refused_unasked),
        ("error", counts.refused_error),
        ("for_one_client", counts.refused_unfit),
    ]
}

/// The counts of requests that passed although their rule is on, by reason.
pub fn passed(counts: &NearRuleCounts) -> [(&'static str, u64); 3] {
    [
        ("changing", counts.passed_changing),
        ("too_large", counts.passed_unkept),
        ("not_asked_again", counts.passed_unasked),
    ]
}

impl RuleStatus {
    fn of(rule: &Rule, counts: &NearRuleCounts, usage: &RuleUsage, config: &Config) -> Self {
        let by_name = |rows: &[(&str, u64)]| -> BTreeMap<String, u64> {
            let rows = rows.iter().map(|&(name, count)| (name.to_owned(), count));
            rows.collect()
        };
        let gone = RemovalReason::ALL.map(|why| (why.name(), usage.gone(why)));
        let running = values_of(&rule.settings());
        let configured = config
            .near_rules()
            .into_iter()
            .find(|one| *one.name == *rule.name);
        // As precise as what runs, so that the same looks the same.
        let says = configured.and_then(|rule| near_settings(&rule.values()));
        let says = says.map_or(running.clone(), |settings| values_of(&settings));
        let kept = config
            .near
            .kept
            .rules
            .get(&*rule.name)
            .map(shown)
            .unwrap_or_default();
        let texts = |rows: Vec<(&str, String)>| {
            let rows = rows.into_iter().map(|(name, text)| (name.to_owned(), text));
            rows.collect()
        };
        Self {
            name: rule.name.to_string(),
            keys: configured.map(keys).unwrap_or_default(),
            commands: configured.map(|rule| rule.commands.clone()).unwrap_or_default(),
            on: rule.is_on(),
            configured: texts(shown(&says.other_than(&running))),
            settings: texts(shown(&running)),
            kept: kept.into_iter().map(|(name, _)| name.to_owned()).collect(),
            entries: usage.entries,
            bytes: usage.bytes,
            hits: counts.hits,
            stale_hits: counts.stale,
            negative_hits: counts.negative,
            misses: counts.misses,
            joined: counts.joined,
            fills: counts.fills,
            stored: counts.kept,
            refused: by_name(&refused(counts)),
            passed: by_name(&passed(counts)),
            stood_for_errors: counts.stood_for_errors,
            dropped: by_name(&gone),
            age_at_hit: counts.age as f64 / 1e6 / counts.hits.max(1) as f64,
            saved: counts.saved() as f64 / 1e6,
        }
    }
}

impl RuleStatus {
    /// Its name, and its figures as names with values.
    fn figures(self) -> (String, Vec<(String, String)>) {
        let mut rows = vec![("on".to_owned(), u8::from(self.on).to_string())];
        rows.extend(self.settings);
        let counts = [
            ("entries", self.entries),
            ("bytes", self.bytes),
            ("hits", self.hits),
            ("stale_hits", self.stale_hits),
            ("negative_hits", self.negative_hits),
            ("misses", self.misses),
            ("joined", self.joined),
            ("fills", self.fills),
            ("stored", self.stored),
            ("stood_for_errors", self.stood_for_errors),
        ];
        rows.extend(counts.map(|(name, count)| (name.to_owned(), count.to_string())));
        for (what, counts) in [
            ("refused", self.refused),
            ("passed", self.passed),
            ("dropped", self.dropped),
        ] {
            rows.extend(
                counts
                    .into_iter()
                    .map(|(why, count)| (format!("{what}_{why}"), count.to_string())),
            );
        }
        rows.push((
            "age_at_hit_us".to_owned(),
            ((self.age_at_hit * 1e6) as u64).to_string(),
        ));
        rows.push(("saved_us".to_owned(), ((self.saved * 1e6) as u64).to_string()));
        (self.name, rows)
    }
}

/// The keys that a rule is for.
pub(super) fn keys(rule: &NearRule) -> String {
    match &rule.keys {
        NearKeys::All => "all keys".to_owned(),
        NearKeys::Prefix(prefix) => format!("prefix {}", prefix.escape_debug()),
        NearKeys::Pattern(pattern) => format!("pattern {}", pattern.escape_debug()),
    }
}

impl Proxy {
    /// The near cache with its rules. It asks the workers, and waits for them.
    ///
    /// # Errors
    /// Nothing is kept by this configuration.
    pub fn near_status(&self) -> Result<NearStatus, NearError> {
        self.near_status_by(&self.metrics())
    }

    /// The same with these counts.
    ///
    /// # Errors
    /// Nothing is kept by this configuration.
    pub fn near_status_by(&self, metrics: &Metrics) -> Result<NearStatus, NearError> {
        let near = self.near()?;
        let usage = near.store.usage();
        let rules = self
            .rooms()
            .configuration
            .tree()
            .near_rules()
            .cloned()
            .ok_or(NearError::None)?;
        let config = self.rooms().configuration.config().clone();
        let memory = near.store.memory();
        let configured = config.near.memory;
        let rows = rules.all().map(|rule| {
            let counts = metrics.near.get(rule.slot);
            RuleStatus::of(rule, &counts, &near.store.usage_of(rule), &config)
        });
        Ok(NearStatus {
            memory: memory as u64,
            memory_configured: (memory != configured).then(|| shown_size(configured)),
            memory_kept: config.near.kept.memory.is_some(),
            bytes: usage.bytes,
            keys: usage.keys,
            settings_file: config
                .near
                .settings
                .as_ref()
                .map(|path| path.display().to_string()),
            rules: rows.collect(),
        })
    }

    /// The rules that are in force, and where they keep. `None`: nothing is kept by this configuration.
    pub fn near_rules(&self) -> Option<(Arc<Near>, Rules)> {
        let rooms = self.rooms();
        let tree = rooms.configuration.tree();
        Some((Arc::clone(tree.near()?), tree.near_rules()?.clone()))
    }

    /// What clients are told of the near cache; nothing where there is none.
    pub(in crate::control) fn near_counters(&self) -> NearCounters {
        let Ok(near) = self.near_status() else {
            return NearCounters::default();
        };
        NearCounters {
            whole: vec![
                ("limit_bytes", near.memory),
                ("bytes", near.bytes),
                ("keys", near.keys),
            ],
            rules: near.rules.into_iter().map(RuleStatus::figures).collect(),
        }
    }

    /// The keys that were answered most often, of this rule or of all of them.
    ///
    /// # Errors
    /// There is no such rule.
    pub fn near_top(&self, rule: Option<&str>, count: usize) -> Result<Vec<NearTop>, NearError> {
        let (near, rule) = match rule {
            Some(rule) => self.near_rule(rule).map(|(near, rule)| (near, Some(rule)))?,
            None => (self.near()?, None),
        };
        let top = Entries(&near).top(rule.as_deref(), count, self.near_now());
        let how = self.sampled_keys();
        let rows = top.into_iter().filter_map(|hot| {
            Some(NearTop {
                rule: hot.shown.rule.into(),
                key: shown_key(&hot.key, how)?,
                // What was an answer has bytes.
                bytes: hot.shown.bytes.unwrap_or_default(),
                age: hot.shown.age.0 as f64 / 1e6,
                hits: hot.shown.hits,
            })
        });
        Ok(rows.collect())
    }
}
