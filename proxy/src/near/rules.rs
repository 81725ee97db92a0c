//! All rules of a configuration.

use std::{collections::BTreeMap, sync::Arc};

use super::{Rule, RuleSettings};

/// The rules of a configuration, by name.
///
/// Invariant: a rule that is the same in the next configuration, with the same below it, stays the same rule
/// with its entries and with what was changed while the process runs. Any other one begins without entries.
#[derive(Clone, Default)]
pub struct Rules {
    rules: BTreeMap<String, Known>,
    /// The names whose counts have a place, by place.
    slots: Vec<String>,
}

#[derive(Clone)]
struct Known {
    /// What the configuration says of it and of what stands below it.
    told: String,
    /// Its settings in the configuration.
    configured: RuleSettings,
    rule: Arc<Rule>,
}

/// What a configuration says of a rule.
pub struct Told {
    /// Its name.
    pub name: String,
    /// All that empties it when it changes.
    pub text: String,
    /// Its settings.
    pub settings: RuleSettings,
}

impl Rules {
    /// The rules of the next configuration.
    pub fn next(&self, told: impl Iterator<Item = Told>) -> Self {
        let mut next = Self {
            rules: BTreeMap::new(),
            slots: self.slots.clone(),
        };
        for Told { name, text, settings } in told {
            let same = self.rules.get(&name).filter(|known| known.told == text);
            let rule = match same {
                Some(known) => Arc::clone(&known.rule),
                None => Arc::new(Rule::new(&name, next.slot(&name), &settings)),
            };
            let known = Known {
                told: text,
                configured: settings,
                rule,
            };
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
        // There are never so many names; the last place would count for all further ones.
        u16::try_from(slot).unwrap_or(u16::MAX)
    }

    /// The rule of this name.
    pub fn get(&self, name: &str) -> Option<&Arc<Rule>> {
        self.rules.get(name).map(|known| &known.rule)
    }

    /// The settings of this rule in the configuration.
    pub fn configured(&self, name: &str) -> Option<RuleSettings> {
        self.rules.get(name).map(|known| known.configured)
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
