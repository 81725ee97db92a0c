//! The configuration without its macros. Clients who ask for it often make nobody wait: it is made once for
//! each version.

use std::sync::Arc;

use crate::control::Proxy;

/// The last text that was made, with its version.
#[derive(Debug, Default)]
pub(super) struct Expansion(Option<(String, Arc<str>)>);

impl Expansion {
    /// The text of what runs. It is made of the files as they are, which may be newer for a moment.
    pub(super) fn of(&mut self, proxy: &Proxy) -> Result<Arc<str>, String> {
        let version = proxy.version();
        if let Some((made, text)) = &self.0
            && *made == version
        {
            return Ok(Arc::clone(text));
        }
        let expanded = proxy.expanded().ok_or("the configuration has no macros")?;
        let text: Arc<str> = expanded.map_err(|error| error.to_string())?.into();
        self.0 = Some((version, Arc::clone(&text)));
        Ok(text)
    }
}
