//! Orders for the near cache. Each may walk through all that is kept: they are carried out beside the
//! control thread.

use crate::{
    config::{
        near_settings::{parse_size, parse_values, shown},
        schema::NearValues,
    },
    control::Proxy,
    event_log::kind,
    micros::Micros,
    near::{Entries, Near, Rule},
    route::near_settings,
    worker::Order,
};

use super::{NearError, values_of};

/// Which replies of a rule are meant.
#[derive(Clone, Copy, Debug)]
pub enum DropScope<'a> {
    /// Those of this key.
    Key(&'a [u8]),
    /// Those of the keys that begin so.
    Prefix(&'a [u8]),
    /// All.
    All,
}

impl Proxy {
    /// Changes settings of a rule at once, for what is kept already, too. `keep`: beyond the end of the
    /// process.
    ///
    /// # Errors
    /// There is no such rule, a value cannot be used, or it cannot be kept.
    pub fn set_near_rule(&self, name: &str, pairs: &[(&str, &str)], keep: bool) -> Result<(), NearError> {
        let mut off = self.near_orders.lock();
        let (near, rule) = self.near_rule(name)?;
        let values = parse_values(pairs).map_err(NearError::Value)?;
        if values.ttl.is_some() {
            off.remove(name);
        }
        self.put_near_in_force(&near, &rule, &values, keep)
    }

    /// Changes the memory of the near cache. What is above it goes at once.
    ///
    /// # Errors
    /// The text is no size, or it cannot be kept.
    pub fn set_near_memory(&self, text: &str, keep: bool) -> Result<(), NearError> {
        let _one_after_another = self.near_orders.lock();
        let near = self.near()?;
        let memory = parse_size(text).map_err(NearError::Value)?;
        if keep {
            self.keep_near(None, Some(memory))?;
        }
        near.store.set_memory(memory);
        self.sweep_near(&near);
        tracing::info!(target: kind::NEAR, memory, keep, "near cache: memory set");
        Ok(())
    }

    /// Switches a rule on, with this `ttl`, else with the one that it had before it was switched off, else
    /// with the configuration's.
    ///
    /// # Errors
    /// There is no such rule, it has no such time, or the text is none.
    pub fn near_on(&self, name: &str, ttl: Option<&str>, keep: bool) -> Result<(), NearError> {
        let mut off = self.near_orders.lock();
        let (near, rule) = self.near_rule(name)?;
        let mut values = match ttl {
            Some(ttl) => parse_values(&[("ttl", ttl)]).map_err(NearError::Value)?,
            None => NearValues::default(),
        };
        if values.ttl.is_none() && !rule.is_on() {
            values.ttl = off
                .get(name)
                .map(|&ttl| ttl.into())
                .or_else(|| self.configured_ttl(name));
        }
        let is_on = values.ttl.map_or(rule.is_on(), |ttl| !ttl.is_zero());
        if !is_on {
            return Err(NearError::NoTime(name.to_owned()));
        }
        if keep && values.ttl.is_none() {
            values.ttl = Some(rule.settings().ttl.into());
        }
        self.put_near_in_force(&near, &rule, &values, keep)?;
        off.remove(name);
        Ok(())
    }

    /// Switches a rule off: its requests pass, and what it has kept is freed.
    ///
    /// # Errors
    /// There is no such rule, or that cannot be kept.
    pub fn near_off(&self, name: &str, keep: bool) -> Result<(), NearError> {
        let mut off = self.near_orders.lock();
        let (near, rule) = self.near_rule(name)?;
        let ttl = rule.settings().ttl;
        let values = NearValues {
            ttl: Some(Micros::ZERO.into()),
            ..NearValues::default()
        };
        self.put_near_in_force(&near, &rule, &values, keep)?;
        if ttl > Micros::ZERO {
            off.insert(name.to_owned(), ttl);
        }
        Ok(())
    }

    /// Drops kept replies, and has no fill kept that is under way. A single key is dropped as by a request
    /// that changes it: in all rules. Returns how many replies went.
    ///
    /// # Errors
    /// There is no such rule.
    pub fn drop_near(&self, name: &str, meant: DropScope<'_>) -> Result<u64, NearError> {
        let (near, rule) = self.near_rule(name)?;
        let gone = match meant {
            DropScope::Key(key) => Entries(&near).drop_key(None, key) as u64,
            DropScope::Prefix(prefix) => Entries(&near).drop_prefix(&rule, prefix) as u64,
            DropScope::All => {
                let before = near.store.usage_of(&rule).entries;
                rule.drop_all();
                self.sweep_near(&near);
                before
            }
        };
        tracing::info!(target: kind::NEAR, rule = name, gone, "near cache: dropped");
        Ok(gone)
    }

    /// Frees what nobody can find any more, and has it given back to the system.
    fn sweep_near(&self, near: &Near) {
        Entries(near).sweep(self.near_now());
        self.give_back();
    }

    fn put_near_in_force(
        &self,
        near: &Near,
        rule: &Rule,
        values: &NearValues,
        keep: bool,
    ) -> Result<(), NearError> {
        let before = rule.settings();
        let Some(settings) = near_settings(&values.or(&values_of(&before))) else {
            return Ok(());
        };
        if keep {
            self.keep_near(Some((&rule.name, values)), None)?;
        }
        rule.set(&settings);
        if (before.ttl == Micros::ZERO) != (settings.ttl == Micros::ZERO) {
            self.workers.order(|_| Order::FollowNear);
        }
        if !rule.is_on() {
            rule.drop_all();
        } else if settings.largest != before.largest {
            Entries(near).drop_unfit(rule);
        }
        self.sweep_near(near);
        let said: Vec<String> = shown(&values_of(&settings))
            .into_iter()
            .map(|(name, value)| format!("{name} {value}"))
            .collect();
        let settings = said.join(", ");
        tracing::info!(target: kind::NEAR,
            rule = &*rule.name,
            settings,
            keep,
            "near cache: settings in force"
        );
        Ok(())
    }

    /// The time of this rule by the files, if that is above zero.
    fn configured_ttl(&self, name: &str) -> Option<std::time::Duration> {
        let rooms = self.rooms();
        let config = rooms.configuration.config();
        let rules = config.near_rules();
        let rule = rules.into_iter().find(|rule| rule.name == name)?;
        let kept = config.near_values(rule).ttl;
        kept.into_iter().chain([rule.ttl]).find(|ttl| !ttl.is_zero())
    }
}
