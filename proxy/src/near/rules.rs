//! All rules of a configuration.

use std::{collections::BTreeMap, sync::Arc};

use super::{Rule, RuleSettings};

/// The rules of a configuration, by name.
///
/// Invariant: a rule that is the same in the next configuration, with the same below it, stays the same rule
/// with its entries. Any other one begins without entries. What was changed while the process runs stays with
/// the name, as far as the configuration says the same as before.
#[derive(Clone, Default)]
pub struct Rules {
    rules: BTreeMap<String, RuleEntry>,
    /// The names whose counts have a place, by place.
    slots: Vec<String>,
}

#[derive(Clone)]
struct RuleEntry {
    /// The text of the configuration about it and the routes below it.
    told: String,
    rule: Arc<Rule>,
}

/// A rule as the configuration has it.
pub struct ConfiguredRule {
    /// Its name.
    pub name: String,
    /// All that empties it when it changes.
    pub text: String,
    /// Its settings.
    pub settings: RuleSettings,
    /// Its settings in the configuration before. `None`: it had no such rule.
    pub before: Option<RuleSettings>,
}

impl Rules {
    /// The rules of the next configuration.
    pub fn next(&self, told: impl Iterator<Item = ConfiguredRule>) -> Self {
        let mut next = Self {
            rules: BTreeMap::new(),
            slots: self.slots.clone(),
        };
        for told in told {
            let ConfiguredRule {
                name,
                text,
                settings,
                before,
            } = told;
            let same = self.rules.get(&name).filter(|known| known.told == text);
            let rule = match same {
                Some(known) => Arc::clone(&known.rule),
                None => {
                    let running = self.rules.get(&name).map(|known| known.rule.settings());
                    let settings = match running.zip(before) {
                        Some((running, before)) => running.following(&before, &settings),
                        None => settings,
                    };
                    Arc::new(Rule::new(&name, next.slot(&name), &settings))
                }
            };
            let known = RuleEntry { told: text, rule };
            next.rules.insert(name, known);
        }
        next
    }

    fn slot(&mut self, name: &str) -> u16 {
        let known = self.slots.iter().position(|slot| slot == name);
        let slot = known.unwrap_or_else(|| {
            self.slots.push(name.to_owned());
            self.slots.len() - 1
        });
        // There are never that many names; the last slot would count for all further ones.
        u16::try_from(slot).unwrap_or(u16::MAX)
    }

    /// The rule of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Rule>> {
        self.rules.get(name).map(|known| &known.rule)
    }

    /// All rules, by name.
    pub fn all(&self) -> impl Iterator<Item = &Arc<Rule>> {
        self.rules.values().map(|known| &known.rule)
    }

    /// Is there none?
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::micros::Micros;

    fn settings(ttl: u64, stale: u64) -> RuleSettings {
        RuleSettings {
            ttl: Micros::secs(ttl),
            jitter: 0,
            stale: Micros::secs(stale),
            stale_on_error: Micros::ZERO,
            negative: Micros::ZERO,
            largest: 1,
        }
    }

    fn told(text: &str, settings: RuleSettings, before: Option<RuleSettings>) -> ConfiguredRule {
        ConfiguredRule {
            name: "maps".to_owned(),
            text: text.to_owned(),
            settings,
            before,
        }
    }

    #[test]
    fn what_was_set_at_run_time_stays_where_the_next_configuration_says_the_same() {
        let configured = settings(10, 1);
        let first = Rules::default().next([told("one", configured, None)].into_iter());
        let rule = Arc::clone(first.get("maps").unwrap());
        rule.set(&settings(3, 2));
        let same = first.next([told("one", configured, Some(configured))].into_iter());
        assert!(
            Arc::ptr_eq(&rule, same.get("maps").unwrap()),
            "it keeps its entries"
        );
        let other = first.next([told("two", settings(20, 1), Some(configured))].into_iter());
        let other = other.get("maps").unwrap();
        assert!(other.number() != rule.number() && other.slot == rule.slot);
        assert_eq!(
            other.settings(),
            settings(20, 2),
            "the file's new ttl, the operator's stale"
        );
    }
}
