//! Loads our configuration file.

use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::Xxh3Default;

use super::{
    ConfigError, Diagnostic, check, file, foreign, near_settings, passwords,
    reading::{Kind, Reading},
    schema::{Config, Fleet, FleetPeers, Peers, Pool},
    users,
    yaml::{self, PeerFile},
};

/// The name of the built-in configuration in messages.
pub const BUILT_IN: &str = "(built in)";

/// Where the built-in configuration serves clients of Redis.
pub const BUILT_IN_REDIS: &str = "127.0.0.1:6379";

/// A configuration without mistakes.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration. Its paths are such that the process can open them.
    pub config: Config,
    /// Warnings, one line each with file, line and column.
    pub warnings: Vec<String>,
    /// The files on which it depends: itself and the files of servers.
    pub files_watched: Vec<PathBuf>,
    /// The MD5 digests of the texts of these files, its own first. Only mcrouter's front door tells them.
    pub digests: Vec<(PathBuf, String)>,
    /// The text of the file as it may be shown: without a password.
    pub text: String,
    /// 16 hexadecimal digits that are the same on every proxy that has the same text.
    pub version_hash: String,
}

/// Reads and checks our YAML file at `path`, and the files of servers that it names.
///
/// # Errors
/// The file, or one that it names, cannot be read or is refused. The error names all places with mistakes.
pub fn load(path: &Path) -> Result<Loaded, ConfigError> {
    let text = file::read(path).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    let mut cx = Reading::default();
    match read(&text, path, &mut cx) {
        Ok(mut config) => {
            let mut unread = passwords::read(&mut config, path).err().unwrap_or_default();
            unread.extend(users::read(&mut config).err().unwrap_or_default());
            let unkept = near_settings::load(&mut config).err();
            let mut refused = unusable_files(&config).into_iter().chain(unread).chain(unkept);
            match refused.next() {
                None => {
                    let mut loaded = loaded(config, cx, &text, path);
                    loaded.warnings.extend(near_settings::warnings(&loaded.config));
                    loaded.warnings.extend(users::warnings(&loaded.config));
                    Ok(loaded)
                }
                Some(first) => Err(ConfigError {
                    others: refused.collect(),
                    ..first
                }),
            }
        }
        Err(refused) => Err(ConfigError {
            others: refused.good.as_ref().map(unusable_files).unwrap_or_default(),
            ..refused.error
        }),
    }
}

/// The problems of the files of servers that a configuration names.
fn unusable_files(config: &Config) -> Vec<ConfigError> {
    let mut refused: Vec<ConfigError> = Vec::new();
    for pool in config.pools.values() {
        if let Some(file) = pool.source.file() {
            let unusable =
                |problem: check::UnusableHash| ConfigError::one(file, Diagnostic::whole(problem.to_string()));
            let usable = |servers: Vec<_>| check::shared_out(&pool.hash, &servers).map_err(unusable);
            // Two pools may have the same file.
            if let Err(mistake) = pool.source.read().and_then(usable)
                && !refused.contains(&mistake)
            {
                refused.push(mistake);
            }
        }
    }
    refused
}

/// The configuration of a start without one: the store inside this process, for clients of memcached. If
/// `with_redis`, those of Redis are served at [`BUILT_IN_REDIS`].
///
/// # Errors
/// None; it is checked as any other.
pub fn built_in(with_redis: bool) -> Result<Loaded, ConfigError> {
    let redis = match with_redis {
        true => format!("  - {{address: \"{BUILT_IN_REDIS}\", protocol: redis, route: embedded}}\n"),
        false => String::new(),
    };
    let text = format!(
        "listeners:\n  - {{address: \"127.0.0.1:11211\", route: embedded}}\n{redis}admin: \"127.0.0.1:9150\"\n"
    );
    let mut loaded = parse(&text, Path::new(BUILT_IN))?;
    loaded.files_watched.clear();
    Ok(loaded)
}

/// Checks a configuration in our YAML that was read from `path`. Files of servers are not read.
///
/// # Errors
/// The configuration is refused.
pub fn parse(text: &str, path: &Path) -> Result<Loaded, ConfigError> {
    let mut cx = Reading::default();
    match read(text, path, &mut cx) {
        Ok(config) => Ok(loaded(config, cx, text, path)),
        Err(refused) => Err(refused.error),
    }
}

/// A text with mistakes.
struct Refused {
    error: ConfigError,
    /// The rest of it. `None`: too much is unknown.
    good: Option<Config>,
}

/// Reads a text and checks as much of it as could be read.
fn read(text: &str, path: &Path, cx: &mut Reading) -> Result<Config, Box<Refused>> {
    let read = yaml::parse(text, cx);
    let mut mistakes = std::mem::take(&mut cx.mistakes);
    let config = read.map_err(|mistake| mistakes.push(mistake)).ok();
    if !mistakes.is_empty()
        && let Some(diagnostic) = foreign::recognized(text)
    {
        let error = ConfigError::one(path, diagnostic);
        return Err(Box::new(Refused { error, good: None }));
    }
    mistakes.sort_by_key(|diagnostic| diagnostic.at);
    // A missing part follows most often from the mistake at the same place.
    mistakes.dedup_by(|next, one| next.at.is_some() && next.at == one.at);
    mistakes.extend(config.iter().flat_map(|config| check::check(config, &cx.index)));
    mistakes.sort_by_key(|diagnostic| diagnostic.at);
    let config = config.map(|config| seen_from(path, config));
    match config {
        Some(config) if mistakes.is_empty() => Ok(config),
        good => Err(Box::new(Refused {
            error: ConfigError::all(path, mistakes),
            good,
        })),
    }
}

/// Makes the paths relative to the file in which they stand, wherever the process was started.
fn seen_from(path: &Path, mut config: Config) -> Config {
    let folder = path.parent().unwrap_or(Path::new(""));
    if let Some(state) = &mut config.state {
        *state = folder.join(&*state);
    }
    if let Some(settings) = &mut config.near.settings {
        *settings = folder.join(&*settings);
    }
    if let Some(file) = &mut config.drain.file {
        *file = folder.join(&*file);
    }
    if let Some(nodes) = &mut config.nodes {
        nodes.from = folder.join(&nodes.from);
    }
    if let Some(fleet) = &mut config.fleet {
        fleet_seen_from(folder, fleet);
    }
    for discovery in config
        .listeners
        .iter_mut()
        .filter_map(|listener| listener.discovery.as_mut())
    {
        if let Some(keep) = &mut discovery.keep {
            *keep = folder.join(&*keep);
        }
        peers_seen_from(folder, &mut discovery.peers);
    }
    if let Some(tls) = &mut config.admin_tls {
        tls.below(folder);
    }
    if let Some(tokens) = &mut config.admin_tokens {
        *tokens = folder.join(&*tokens);
    }
    for tls in config
        .listeners
        .iter_mut()
        .filter_map(|listener| listener.tls.as_mut())
    {
        tls.below(folder);
    }
    for tls in config.pools.values_mut().filter_map(|pool| pool.tls.as_mut()) {
        tls.below(folder);
    }
    passwords::below(folder, &mut config);
    users::below(folder, &mut config);
    let below = |(name, pool): (String, Pool)| {
        let source = pool.source.below(folder).unwrap_or(pool.source);
        (name, Pool { source, ..pool })
    };
    config.pools = config.pools.into_iter().map(below).collect();
    config
}

fn peers_seen_from(folder: &Path, peers: &mut Peers) {
    if let Peers::File(file) = peers {
        *file = folder.join(&*file);
    }
}

fn fleet_seen_from(folder: &Path, fleet: &mut Fleet) {
    fleet.dir = folder.join(&fleet.dir);
    match &mut fleet.peers {
        FleetPeers::At(peers) => peers_seen_from(folder, peers),
        FleetPeers::Service(service) => {
            service.keep = service.keep.take().map(|keep| folder.join(keep));
        }
    }
    if let Some(tls) = &mut fleet.tls {
        tls.identity.below(folder);
        tls.ca = folder.join(&tls.ca);
    }
}

/// Reads the file that makes a proxy with another program's configuration a peer of a fleet.
///
/// # Errors
/// The file cannot be read, or is refused.
pub(crate) fn load_peer(path: &Path) -> Result<PeerFile, ConfigError> {
    let text = file::read(path).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    let mut cx = Reading::default();
    let mut read = yaml::parse_peer(&text, &mut cx).map_err(|mistake| ConfigError::one(path, mistake))?;
    let mistakes = std::mem::take(&mut cx.mistakes);
    if !mistakes.is_empty() {
        return Err(ConfigError::all(path, mistakes));
    }
    fleet_seen_from(path.parent().unwrap_or(Path::new("")), &mut read.fleet);
    Ok(read)
}

/// Completes a configuration without mistakes by its warnings and files.
fn loaded(config: Config, mut cx: Reading, text: &str, path: &Path) -> Loaded {
    warn_of_unused(&config, &mut cx);
    check::warn_of_two(&config, &mut cx);
    check::warn_of_both(&config, &mut cx);
    check::warn_of_admin(&config, &mut cx);
    check::warn_of_near(&config, &mut cx);
    let files = config.pools.values().filter_map(|pool| pool.source.file());
    let files = files
        .chain(passwords::files(&config))
        .chain(users::files(&config));
    let files_watched = [path].into_iter().chain(files).map(Path::to_owned).collect();
    Loaded {
        config,
        warnings: cx.warnings_of(path),
        files_watched,
        digests: Vec::new(),
        text: text.to_owned(),
        version_hash: version_hash([text]),
    }
}

/// The version of several texts together.
pub(crate) fn version_hash<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    let mut hasher = Xxh3Default::new();
    for text in texts {
        hasher.update(&(text.len() as u64).to_le_bytes());
        hasher.update(text.as_bytes());
    }
    format!("{:016x}", hasher.digest())
}

/// Warns of names that nothing mentions: they are more likely misspelt somewhere than meant.
fn warn_of_unused(config: &Config, cx: &mut Reading) {
    let mentioned = |name: &str, cx: &Reading| {
        cx.index.mentions.iter().any(|mention| match mention.kind {
            Kind::Member => mention.name.split_once('/').is_some_and(|(pool, _)| pool == name),
            _ => mention.name == name,
        })
    };
    let pools = config
        .pools
        .keys()
        .map(|name| (name, cx.index.pools.get(name), "pool"));
    let routes = config
        .routes
        .keys()
        .map(|name| (name, cx.index.routes.get(name), "route"));
    let unused: Vec<Diagnostic> = pools
        .chain(routes)
        .filter(|(name, ..)| !mentioned(name, cx))
        .filter_map(|(name, site, what)| Some(site?.refuse(format!("nothing uses the {what} `{name}`"))))
        .collect();
    cx.warnings.extend(unused);
}
