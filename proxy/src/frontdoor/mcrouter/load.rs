//! Reads the configuration that a command line names, as often as its files change.

use std::path::{Path, PathBuf};

use md5::{Digest as _, Md5};

use super::{
    dump::{Dump, Origin, Texts},
    fleet::join,
    json,
    keep_writing::keep_writing,
    preprocess::Preprocessor,
    runtime::Variables,
    settings::Settings,
    tree,
};
use crate::config::{
    ConfigError, Diagnostic, Loaded, PeerFile, Place, check,
    reading::Reading,
    schema::{Config, Listener},
    version_hash,
};

/// The name in messages for a configuration that is an argument.
const ARGUMENT: &str = "<command line>";

/// The place of the configuration.
#[derive(Clone, Debug)]
pub(super) enum Input {
    /// The text itself.
    Text(String),
    File(PathBuf),
}

/// All that a configuration is made of, apart from its files.
#[derive(Debug)]
pub(super) struct Reader {
    pub(super) input: Input,
    pub(super) settings: Settings,
    /// The configuration without its pools and routes.
    pub(super) base: Config,
    /// The file that makes this proxy a peer of a fleet, as it was read at the start.
    pub(super) peer: Option<(PeerFile, PathBuf)>,
    /// The folder of the last good configuration.
    pub(super) dump: Option<Dump>,
    /// The file of runtime variables. `None` without such a file.
    pub(super) variables: Option<PathBuf>,
}

impl Reader {
    /// Reads the files.
    pub(super) fn read(&self) -> Result<Loaded, ConfigError> {
        self.read_from(Origin::Files, true).map(|(loaded, _)| loaded)
    }

    /// Reads the files, at the start of the process or later, and keeps their texts if they are good.
    pub(super) fn read_and_keep(&self, is_first: bool) -> Result<Loaded, ConfigError> {
        let (loaded, texts) = self.read_from(Origin::Files, is_first)?;
        if let Some(dump) = self
            .dump
            .as_ref()
            .filter(|_| matches!(self.input, Input::File(_)))
            && let Err(error) = dump.keep(&texts)
        {
            tracing::warn!("the configuration cannot be kept for a later start: {error}");
        }
        Ok(loaded)
    }

    /// Reads the files as they were when the configuration was last good. `bad` says what is wrong with them
    /// now.
    pub(super) fn read_dump(&self, bad: ConfigError) -> Result<Loaded, ConfigError> {
        let Some(dump) = &self.dump else {
            return Err(bad);
        };
        match self.read_from(Origin::Dump(dump), true) {
            Ok((mut loaded, _)) => {
                let warning =
                    format!("the configuration is the last good one, as this one is refused: {bad}");
                loaded.warnings.insert(0, warning);
                Ok(loaded)
            }
            Err(_) => Err(bad),
        }
    }

    /// The configuration without its macros, as JSON.
    pub(super) fn expanded(&self) -> Result<String, ConfigError> {
        let (path, text) = self.text(Origin::Files)?;
        let mut preprocessor = Preprocessor::new(&self.settings.constants, Origin::Files, self.folder());
        let expanded = preprocessor.expand(&text, &mut Reading::default());
        expanded
            .map(|node| json::pretty(&node))
            .map_err(|diagnostic| ConfigError::one(path, diagnostic))
    }

    /// The text of the configuration, and its name in messages.
    fn text(&self, origin: Origin<'_>) -> Result<(&Path, String), ConfigError> {
        match &self.input {
            Input::Text(text) => Ok((Path::new(ARGUMENT), text.clone())),
            Input::File(path) => match origin.read(path) {
                Ok(text) => Ok((path, text)),
                Err(why) => Err(unreadable(path, why)),
            },
        }
    }

    fn read_from(&self, origin: Origin<'_>, is_first: bool) -> Result<(Loaded, Texts), ConfigError> {
        let (path, text) = self.text(origin)?;
        let (variables, unusable) = match &self.variables {
            Some(path) => Variables::read(path, is_first)?,
            None => Default::default(),
        };
        let mut cx = Reading::default();
        cx.is_strict = self.settings.is_strict;
        let mut preprocessor = Preprocessor::new(&self.settings.constants, origin, self.folder());
        let tree = tree::read(&text, &self.settings, &mut preprocessor, &variables, &mut cx)
            .map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
        if !cx.mistakes.is_empty() {
            return Err(ConfigError::all(path, cx.mistakes));
        }
        let mut texts = preprocessor.into_files();
        let listeners = self.base.listeners.iter().map(|listener| Listener {
            route: tree.root.clone(),
            ..listener.clone()
        });
        let mut config = Config {
            listeners: listeners.collect(),
            pools: tree.pools,
            routes: tree.routes,
            ..self.base.clone()
        };
        let diagnostics = check::check(&config, &cx.index);
        if !diagnostics.is_empty() {
            return Err(ConfigError::all(path, diagnostics));
        }
        let whole = Place { line: 1, column: 1 };
        if let Some(how) = self.settings.keep_writing {
            let warnings =
                keep_writing(&mut config, how).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
            warnings.into_iter().for_each(|warning| cx.warn(whole, warning));
        }
        if let Some((peer, file)) = &self.peer {
            let warnings = join(&mut config, peer, file)?;
            warnings.into_iter().for_each(|warning| cx.warn(whole, warning));
        }
        let own = matches!(self.input, Input::File(_)).then(|| path.to_owned());
        let digest = |(path, text): (&Path, &str)| (path.to_owned(), hex(&Md5::digest(text)));
        let others = texts.iter().map(|(path, text)| (path.as_path(), text.as_str()));
        let digests = [(path, text.as_str())].into_iter().chain(others);
        let loaded = Loaded {
            config,
            warnings: cx.warnings_of(path).into_iter().chain(unusable).collect(),
            version_hash: version_hash(
                [&text, &variables.text]
                    .into_iter()
                    .chain(texts.values())
                    .map(String::as_str),
            ),
            files_watched: own
                .into_iter()
                .chain(texts.keys().cloned())
                .chain(self.variables.clone())
                .collect(),
            digests: digests.map(digest).collect(),
            text: text.clone(),
        };
        texts.insert(path.to_owned(), text);
        Ok((loaded, texts))
    }

    /// The folder of imported files. `None`: the working directory.
    fn folder(&self) -> Option<PathBuf> {
        match &self.input {
            Input::File(path) => path.parent().map(Path::to_owned),
            Input::Text(_) => None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The message begins as mcrouter's users look for it.
fn unreadable(path: &Path, why: Diagnostic) -> ConfigError {
    let problem = format!("Can not read config: {}", why.problem);
    ConfigError::one(path, Diagnostic { problem, ..why })
}
