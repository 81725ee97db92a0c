//! Settings that outlive the process.

use super::NearError;
use crate::{
    config::{near_settings, schema::NearValues},
    control::Proxy,
};

impl Proxy {
    /// Writes settings to the file that the configuration names. What the configuration says itself is not
    /// kept.
    ///
    /// # Errors
    /// There is no such file, or it cannot be read or written.
    pub(super) fn keep_near(
        &self,
        rule: Option<(&str, &NearValues)>,
        memory: Option<usize>,
    ) -> Result<(), NearError> {
        let config = self.rooms().configuration.config().clone();
        let path = config.near.settings.clone().ok_or(NearError::NoFile)?;
        // An operator may have changed the file since it was read.
        let mut kept = near_settings::read(&path).map_err(NearError::Damaged)?;
        if let Some(memory) = memory {
            kept.memory = (memory != config.near.memory).then_some(memory);
        }
        if let Some((name, values)) = rule {
            let configured = config.near_rules().into_iter().find(|rule| rule.name == name);
            let configured = configured.map(|rule| rule.values()).unwrap_or_default();
            let before = kept.rules.remove(name).unwrap_or_default();
            let values = values.or(&before).other_than(&configured);
            if values != NearValues::default() {
                kept.rules.insert(name.to_owned(), values);
            }
        }
        near_settings::write(&path, &kept).map_err(|error| NearError::Unwritten(path, error))?;
        // A reload compares with it what the file says then.
        self.rooms().configuration.set_near_kept(kept);
        Ok(())
    }
}
