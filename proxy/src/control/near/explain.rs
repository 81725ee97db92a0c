//! Why a key is or is not answered by a rule.

use std::{fmt::Write, time::Duration};

use super::{NearError, status::keys};
use crate::{
    control::Proxy,
    near::{Entries, RuleSettings},
    route::Takes,
};

impl Proxy {
    /// Says what a rule does with a key: whether it is for it, what is kept, and what a reader gets next.
    ///
    /// # Errors
    /// There is no such rule.
    pub fn explain_near(&self, name: &str, key: &[u8]) -> Result<String, NearError> {
        let (near, rule) = self.near_rule(name)?;
        let RuleSettings { ttl, stale, .. } = rule.settings();
        let mut out = String::new();
        let mut line = |text: String| {
            // Writing to a String cannot fail.
            let _ = writeln!(out, "{text}");
        };
        let rooms = self.rooms();
        let configuration = &rooms.configuration;
        let rules = configuration.config().near_rules();
        let of = rules
            .into_iter()
            .find(|one| one.name == name)
            .map(keys)
            .unwrap_or_default();
        line(format!(
            "rule {name}: {of}, ttl {}, stale {}",
            time(ttl.into()),
            time(stale.into())
        ));
        match configuration.tree().near_takes(name, key) {
            Takes::Key => line("  it is for this key".to_owned()),
            Takes::ByOther(other) => {
                line(format!(
                    "  it is not asked about this key: rule {other} stands before it"
                ));
            }
            Takes::Not => {
                line("  it is not for this key: a request for it goes on to the next rule".to_owned())
            }
        }
        drop(rooms);
        if !rule.is_on() {
            line("  it is off: requests pass, and nothing is kept (`proxima near on`)".to_owned());
            return Ok(out);
        }
        if !near.ready.is_complete(self.workers()) {
            line("  nothing is kept yet: some workers do not count their changes yet".to_owned());
        }
        let entries = Entries(&near);
        if entries.is_changing(key) {
            line("  a change is under way: reads pass until it has ended".to_owned());
        }
        let kept = entries.of_key(key, self.near_now());
        let own: Vec<_> = kept.into_iter().filter(|shown| *shown.rule == *name).collect();
        if own.is_empty() {
            line("  nothing is kept: the next read fetches it".to_owned());
        }
        for shown in own {
            let age = time(Duration::from_millis(shown.age.0 / 1000));
            line(match (shown.bytes, shown.age < ttl) {
                (None, _) => format!("  the reply is known to be too large to be kept, for {age}"),
                (Some(bytes), true) => format!("  kept: {bytes} bytes, {age} old, {} hits", shown.hits),
                (Some(bytes), false) => format!(
                    "  kept: {bytes} bytes, {age} old, {} hits; its time is over, and the next read renews it",
                    shown.hits
                ),
            });
        }
        line(format!(
            "  a change through this proxy is seen at once, any other after {} at most",
            time((ttl + stale).into())
        ));
        Ok(out)
    }
}

fn time(time: Duration) -> String {
    format!("{time:?}")
}
