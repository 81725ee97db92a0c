//! Options of the command line that replace values of a configuration.

use std::path::Path;

use super::{ConfigError, Diagnostic, Loaded};

/// Values of options. `None`: the configuration's value holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// The address of the only listener.
    pub listen: Option<String>,
    /// The address of the admin port.
    pub admin: Option<String>,
    /// Worker threads.
    pub workers: Option<usize>,
}

impl Overrides {
    /// The configuration with these values in it. Its text says so.
    ///
    /// # Errors
    /// `listen` was given for a configuration with several listeners. The error names `path` as the file.
    pub fn applied(&self, mut loaded: Loaded, path: &Path) -> Result<Loaded, ConfigError> {
        let config = &mut loaded.config;
        if let Some(address) = &self.listen {
            match &mut config.listeners[..] {
                [only] => only.address.clone_from(address),
                several => {
                    let problem = format!(
                        "--listen stands for one listener, the configuration has {}",
                        several.len()
                    );
                    return Err(ConfigError::one(path, Diagnostic::whole(problem)));
                }
            }
        }
        config.workers = self.workers.or(config.workers);
        config.admin = self.admin.clone().or(config.admin.take());
        let given = self.given().join(" ");
        if !given.is_empty() {
            loaded.text = format!("# {given}: in the place of what is said here\n{}", loaded.text);
        }
        Ok(loaded)
    }

    /// The options as they were given.
    fn given(&self) -> Vec<String> {
        let listen = self.listen.as_ref().map(|address| format!("--listen {address}"));
        let admin = self.admin.as_ref().map(|address| format!("--admin {address}"));
        let workers = self.workers.map(|count| format!("--workers {count}"));
        [listen, admin, workers].into_iter().flatten().collect()
    }
}
