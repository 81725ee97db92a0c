//! What operators order for the near cache while it runs, and what a reload leaves of that.
//!
//! ```text
//!  admin port ─▶ orders ─▶ rules' settings, the store        status ─▶ admin port, clients, metrics
//!                  └─ keep ─▶ the file of settings, which is read with the configuration
//!  memory: what the store has freed goes back to the system
//!  reload ─▶ follow: a value counts that the files say otherwise than before; the others stay as ordered
//! ```

mod error;
mod explain;
mod follow;
mod keep;
mod memory;
mod orders;
mod status;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

pub use self::{
    error::NearError,
    orders::DropScope,
    status::{NearStatus, NearTop, RuleStatus, passed, refused},
};
use crate::{
    config::schema::NearValues,
    control::Proxy,
    micros::Micros,
    near::{Near, Rule, RuleSettings},
};

/// What was ordered for the near cache.
#[derive(Debug, Default)]
pub(super) struct NearOrders {
    /// The `ttl` that rules had before they were switched off, by name. Orders are carried out one after
    /// another, under this lock.
    off: Mutex<BTreeMap<String, Micros>>,
}

impl NearOrders {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Micros>> {
        self.off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Proxy {
    /// The time on the process's clock.
    fn near_now(&self) -> Micros {
        self.started.elapsed().into()
    }

    fn near(&self) -> Result<Arc<Near>, NearError> {
        self.rooms()
            .configuration
            .tree()
            .near()
            .cloned()
            .ok_or(NearError::None)
    }

    fn near_rule(&self, name: &str) -> Result<(Arc<Near>, Arc<Rule>), NearError> {
        let near = self.near()?;
        let rooms = self.rooms();
        let rules = rooms.configuration.tree().near_rules().ok_or(NearError::None)?;
        let found = rules.get(name).cloned();
        let rule = found.ok_or_else(|| {
            let names: Vec<&str> = rules.all().map(|rule| &*rule.name).collect();
            NearError::NoRule(name.escape_debug().to_string(), names.join(", "))
        })?;
        Ok((near, rule))
    }
}

/// All settings of a rule, as configurations have them.
fn values_of(settings: &RuleSettings) -> NearValues {
    NearValues {
        ttl: Some(settings.ttl.into()),
        jitter: Some(f64::from(settings.jitter) / 100.0),
        stale: Some(settings.stale.into()),
        stale_on_error: Some(settings.stale_on_error.into()),
        negative: Some(settings.negative.into()),
        largest: Some(settings.largest as usize),
    }
}
