//! Passwords are read from where the configuration says that they are.

use std::path::Path;

use super::{
    ConfigError, Diagnostic, file,
    schema::{Access, Config, Password, PasswordSource, Secret},
};

/// All places of passwords in a configuration.
fn all(config: &mut Config) -> impl Iterator<Item = &mut Password> {
    let pools = config.pools.values_mut();
    let listeners = config.listeners.iter_mut();
    pools
        .filter_map(|pool| pool.login.password.as_mut())
        .chain(listeners.filter_map(|listener| match &mut listener.access {
            Access::Password(password) => Some(password),
            Access::Open | Access::Pass | Access::Users(_) | Access::Servers(_) => None,
        }))
}

/// The files of passwords that a configuration names.
pub(super) fn files(config: &Config) -> impl Iterator<Item = &Path> {
    let pools = config.pools.values();
    let listeners = config.listeners.iter();
    let passwords = pools
        .filter_map(|pool| pool.login.password.as_ref())
        .chain(listeners.filter_map(|listener| match &listener.access {
            Access::Password(password) => Some(password),
            Access::Open | Access::Pass | Access::Users(_) | Access::Servers(_) => None,
        }));
    passwords.filter_map(|password| match &password.source {
        PasswordSource::File(path) => Some(path.as_path()),
        PasswordSource::Variable(_) | PasswordSource::Inline => None,
    })
}

/// Makes the paths of passwords relative to this folder.
pub(super) fn below(folder: &Path, config: &mut Config) {
    for password in all(config) {
        if let PasswordSource::File(path) = &mut password.source {
            *path = folder.join(&*path);
        }
    }
}

/// Reads all passwords.
///
/// # Errors A password is not there. The errors name the file, or the variable of the environment that the
/// configuration at `path` names, and never what is in it.
pub(super) fn read(config: &mut Config, path: &Path) -> Result<(), Vec<ConfigError>> {
    let mut refused = Vec::new();
    for password in all(config) {
        let (place, text) = match &password.source {
            PasswordSource::File(file) => (file.as_path(), file::read(file)),
            PasswordSource::Variable(name) => (path, variable(name)),
            PasswordSource::Inline => continue,
        };
        match text.and_then(|text| secret(&text)) {
            Ok(secret) => password.secret = Some(secret),
            Err(diagnostic) => refused.push(ConfigError::one(place, diagnostic)),
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(refused),
    }
}

/// The password in this text, which may end with a line end.
pub(super) fn secret(text: &str) -> Result<Secret, Diagnostic> {
    let password = text.strip_suffix('\n').unwrap_or(text);
    let password = password.strip_suffix('\r').unwrap_or(password);
    match password.is_empty() {
        true => Err(Diagnostic::whole("the password is empty".to_owned())),
        false => Ok(Secret::new(password.as_bytes())),
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "the configuration names the variable, so that --help could not show it"
)]
fn variable(name: &str) -> Result<String, Diagnostic> {
    let unusable = |error| match error {
        std::env::VarError::NotPresent => "is not set",
        std::env::VarError::NotUnicode(_) => "is no text",
    };
    std::env::var(name).map_err(|error| {
        Diagnostic::whole(format!(
            "the environment variable `{name}` for a password {}",
            unusable(error)
        ))
    })
}
