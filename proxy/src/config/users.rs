//! Users are read from the files that the configuration names.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use proxima_wire::mysql::password::NativeHash;

use super::{
    ConfigError, Diagnostic, file, passwords,
    reading::Reading,
    schema::{Access, Config, KnownUser, KnownUsers, Secret, Users},
    yaml::{self, UserSecret},
};

fn all(config: &mut Config) -> impl Iterator<Item = &mut Users> {
    config
        .listeners
        .iter_mut()
        .filter_map(|listener| match &mut listener.access {
            Access::Users(users) => Some(users),
            Access::Open | Access::Pass | Access::Password(_) | Access::Servers(_) => None,
        })
}

/// All lists of users.
fn lists(config: &Config) -> impl Iterator<Item = &Users> {
    config
        .listeners
        .iter()
        .filter_map(|listener| match &listener.access {
            Access::Users(users) => Some(users),
            Access::Open | Access::Pass | Access::Password(_) | Access::Servers(_) => None,
        })
}

/// The files of users that a configuration names, and those of their passwords.
pub(super) fn files(config: &Config) -> impl Iterator<Item = &Path> {
    lists(config).flat_map(|users| {
        let passwords = users.passwords.iter().map(std::path::PathBuf::as_path);
        [&*users.file].into_iter().chain(passwords)
    })
}

/// Makes the paths of files of users relative to this folder.
pub(super) fn below(folder: &Path, config: &mut Config) {
    for users in all(config) {
        users.file = folder.join(&users.file);
    }
}

/// Reads all users.
///
/// # Errors
/// A file cannot be read, or is refused. The errors never name what is in it.
pub(super) fn read(config: &mut Config) -> Result<(), Vec<ConfigError>> {
    let mut refused = Vec::new();
    for users in all(config) {
        match of(&users.file) {
            Ok(read) => *users = read,
            Err(error) => refused.push(error),
        }
    }
    match refused.is_empty() {
        true => Ok(()),
        false => Err(refused),
    }
}

/// What the methods by which users log in need.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let mut warnings: Vec<String> = lists(config)
        .filter_map(|users| {
            let KnownUsers(known) = &*users.known;
            let is_hash = |user: &KnownUser| NativeHash::read(user.secret.bytes()).is_some();
            let hashed = known.iter().filter(|(_, user)| is_hash(user));
            let names: Vec<_> = hashed.map(|(name, _)| String::from_utf8_lossy(name)).collect();
            (!names.is_empty()).then(|| {
                format!(
                    "{}: of {} a hash is known and no password: clients, and the servers, must have \
                     `mysql_native_password` for them",
                    users.file.display(),
                    names.join(", ")
                )
            })
        })
        .collect();
    warnings.sort();
    warnings.dedup();
    warnings
}

/// The mistake without what was found in its place: it may be a password.
fn without_words(mistake: Diagnostic) -> Diagnostic {
    let problem = match mistake.problem.split_once(", found ") {
        Some((expected, _)) => expected.to_owned(),
        None => mistake.problem,
    };
    Diagnostic { problem, ..mistake }
}

/// The users in this file.
fn of(path: &Path) -> Result<Users, ConfigError> {
    let text = file::read(path).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    let mut cx = Reading::default();
    let read = yaml::parse_users(&text, &mut cx);
    let read = read.map_err(|mistake| ConfigError::one(path, without_words(mistake)))?;
    if !cx.mistakes.is_empty() {
        let mistakes = cx.mistakes.into_iter().map(without_words).collect();
        return Err(ConfigError::all(path, mistakes));
    }
    let (mut known, mut files) = (BTreeMap::new(), Vec::new());
    for (name, user) in read {
        let secret = match user.secret {
            UserSecret::Said(said) => Secret::new(said.as_bytes()),
            UserSecret::File(file) => {
                let file = path.parent().unwrap_or(Path::new("")).join(file);
                let text = file::read(&file).and_then(|text| passwords::secret(&text));
                let secret = text.map_err(|diagnostic| ConfigError::one(&file, diagnostic))?;
                files.push(file);
                secret
            }
        };
        let user = KnownUser {
            secret,
            clients: user.clients,
            consistency: user.consistency,
        };
        known.insert(name.into_bytes(), user);
    }
    Ok(Users {
        file: path.to_owned(),
        passwords: files,
        known: Arc::new(KnownUsers(known)),
    })
}
