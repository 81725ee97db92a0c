//! Checks and explains a configuration without running it.

use std::{fs::File, io, net::IpAddr, path::Path, sync::Arc};

use crate::{
    admin::{Tokens, TokensError},
    config::{
        ConfigError, Loaded, file,
        schema::{Config, Fleet},
        source::Lists,
    },
    control::{
        AgentError,
        surroundings::{
            dns::{self, Names, Questions},
            nodes,
        },
        unix_now,
    },
    copies::Snapshot,
    members::{Localities, OwnLocation, Registry, host_id},
    near::{Near, Rules},
    protocol::Protocols,
    random::Random,
    route::{self, Asker, CompileError, Compiled, Compiler, Example, ExplainError, near_rules},
    tls::{Certificates, TlsError},
};

/// A configuration that was read without a mistake cannot be used on this machine.
#[allow(missing_docs, reason = "the messages name the fields")]
#[derive(Debug, thiserror::Error)]
pub enum OfflineError {
    /// The system gives no thread or socket; it may later.
    #[error(transparent)]
    System(#[from] io::Error),
    /// A file of servers has changed since it was read, and is refused now. The operator has to correct it.
    #[error(transparent)]
    Servers(#[from] ConfigError),
    /// The operator has to name another file, or to let the proxy write to this one.
    #[error(
        "state: {path} cannot be written here: {error}; name a file in a folder that exists and that the proxy may write to"
    )]
    State { path: String, error: io::Error },
    /// The operator has to correct the certificate of the admin port.
    #[error("admin: {0}")]
    Tls(#[from] TlsError),
    /// The operator has to correct the file of tokens.
    #[error("admin: {0}")]
    Tokens(#[from] TokensError),
    /// The operator has to correct the routes.
    #[error(transparent)]
    Routes(#[from] CompileError),
    /// The text to explain is no request.
    #[error(transparent)]
    Request(#[from] ExplainError),
}

/// Asks for every name once. Returns the answers that came in time, and the servers of each pool.
fn ask(config: &Config) -> Result<(Arc<Names>, Lists), OfflineError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let names = Arc::new(Names::offline(runtime.handle().clone()));
    let servers = runtime.block_on(names.begin(config))?;
    Ok((names, servers))
}

/// Asks the node agent once. `None`: the configuration names none.
fn ask_agent(config: &Config) -> Result<Option<Result<Localities, AgentError>>, OfflineError> {
    let Some(nodes) = &config.nodes else {
        return Ok(None);
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    Ok(Some(runtime.block_on(nodes::ask(&nodes.from))))
}

/// Makes the tree of a configuration.
fn compile(loaded: &Loaded, servers: &Lists, registry: &mut Registry) -> Result<Compiled, CompileError> {
    let (config, version) = (&loaded.config, &loaded.version_hash);
    let mut compiler = Compiler::new(config, servers, registry, Protocols::PLAIN, version, host_id())?;
    let rules = near_rules(config, &Rules::default(), config);
    if !rules.is_empty() {
        // Nothing is kept in it, but routes that keep replies are shown, and refused where they cannot.
        let near = Near::new(config.near.memory(), [0; 4]);
        compiler.keep_replies(Some((Arc::new(near), rules)));
    }
    let listeners = config.listeners.iter().map(|listener| listener.address.clone());
    compiler.tree(registry, &listeners.collect::<Vec<_>>())
}

/// The warnings that `run` would log about a configuration that was read without a mistake. Addresses that
/// are in use are not noticed.
///
/// # Errors
/// The reasons why the proxy would not start.
pub fn check(loaded: &Loaded) -> Result<Vec<String>, Vec<OfflineError>> {
    let config = &loaded.config;
    let (names, servers) = ask(config).map_err(|error| vec![error])?;
    let known = names.addresses(&Questions::of(config, &servers));
    let mut refused: Vec<OfflineError> = config.state.as_deref().and_then(unwritable).into_iter().collect();
    let mut registry = Registry::new(OwnLocation::new(&[], None)).sharing(names.certificates());
    registry.set_hosts(known.clone());
    refused.extend(unusable(config, names.certificates()));
    if let Err(error) = compile(loaded, &servers, &mut registry) {
        refused.push(error.into());
    }
    if !refused.is_empty() {
        return Err(refused);
    }
    let mut warnings = Vec::new();
    for (pool, hosts) in dns::hosts(config, &servers) {
        for host in hosts.into_iter().filter(|host| !known.contains_key(host)) {
            let why = names.why_not(&host);
            warnings.push(format!(
                "pool {pool}: `{host}` does not resolve here ({why}); its server is ejected until it does"
            ));
        }
    }
    if let Some(question) = config.fleet.as_ref().and_then(Fleet::question)
        && let Some(failure) = names.status(&question).and_then(|asked| asked.failure)
    {
        let asked = question.asked();
        warnings.push(format!("fleet: {asked} does not tell the peers: {failure}"));
    }
    let waiting = names.explain(config, &servers);
    warnings.extend(
        waiting
            .lines()
            .map(|line| format!("{line}; its requests get errors until it does")),
    );
    Ok(warnings)
}

/// Why the files of the admin port cannot be used.
fn unusable(config: &Config, certificates: &Certificates) -> Option<OfflineError> {
    if let Some(tokens) = &config.admin_tokens
        && let Err(error) = Tokens::new(tokens.clone()).read()
    {
        return Some(error.into());
    }
    let tls = config.admin_tls.as_ref()?;
    Some(certificates.acceptor(tls).err()?.into())
}

/// Why the state file cannot be written here. `None`: it can. Nothing is changed.
fn unwritable(path: &Path) -> Option<OfflineError> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let trial = folder.join(format!(".proxima-check.{}", std::process::id()));
    let readable = match file::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map(drop),
    };
    let writable = || {
        File::options()
            .write(true)
            .create_new(true)
            .open(&trial)
            .and_then(|_| std::fs::remove_file(&trial))
    };
    let error = readable.and_then(|()| writable()).err()?;
    Some(OfflineError::State {
        path: path.display().to_string(),
        error,
    })
}

/// Explains the route of a request, for each listener; of a statement, for each whose clients have
/// statements. Every server that has an address counts as up.
///
/// # Errors
/// The configuration cannot be used, or the text is no request.
pub fn explain(
    loaded: &Loaded,
    here: OwnLocation,
    from: Option<IpAddr>,
    example: Example<'_>,
) -> Result<String, OfflineError> {
    let config = &loaded.config;
    let (names, servers) = ask(config)?;
    let told = ask_agent(config)?;
    let localities = told.as_ref().and_then(|told| told.as_ref().ok());
    let mut registry = Registry::new(here);
    registry.set_hosts(names.addresses(&Questions::of(config, &servers)));
    let built = compile(loaded, &servers, &mut registry)?;
    if let Some(localities) = localities {
        built.tree.follow(&built.tree.orders(localities));
    }
    let mut text = String::new();
    let mut unfit = None;
    for (number, listener) in config.listeners.iter().enumerate() {
        let explained = route::explain(
            &built.tree,
            &Snapshot::default(),
            Asker::at(localities, from, unix_now()),
            number,
            example,
            &mut Random(0),
        );
        match explained {
            Err(error @ ExplainError::NoStatements(_)) => unfit = Some(error),
            explained => text.push_str(&format!("listener {}: {}", listener.address, explained?)),
        }
    }
    if let Some(error) = unfit.filter(|_| text.is_empty()) {
        return Err(error.into());
    }
    text.push_str(&names.explain(config, &servers));
    if let Some(Err(error)) = &told {
        text.push_str(&format!(
            "warning: the node agent does not tell: {error}; all on this host are equally near\n"
        ));
    }
    for warning in built.warnings {
        text.push_str(&format!("warning: {warning}\n"));
    }
    Ok(text)
}
