//! Everything of a change that can fail: trees, sockets, permissions. Until all of it has succeeded nothing
//! is changed that clients see.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs::{self, Metadata},
    io,
    net::IpAddr,
    os::unix::fs::{MetadataExt, chown},
    sync::Arc,
};

use socket2::Socket;

use super::{
    ReloadError,
    plan::{Listener, Side, Step, numbered, plan},
};
use crate::{
    client::{ListenSockets, bind, permit},
    config::{
        Loaded,
        schema::{Config, Permissions, Scripts, SpoolOptions},
        source::Lists,
    },
    copies::Departed,
    members::{Member, MemberId, Registry},
    near::{Near, Rules},
    protocol::Protocols,
    route::{Compiler, LeaseTable, Samples, SlowRequests, Tree, near_rules},
    spool::Spool,
};

/// A configuration with everything that it refers to.
#[derive(Clone, Debug)]
pub(in crate::control) struct Setup {
    pub(in crate::control) loaded: Loaded,
    /// The servers of each pool, whatever their source.
    pub(in crate::control) servers: Lists,
    /// Copies that have left the lists of servers and may return.
    pub(in crate::control) departed: Departed,
    /// The addresses of host names.
    pub(in crate::control) hosts: BTreeMap<String, IpAddr>,
}

/// The running configuration, as far as a change is compared with it.
#[derive(Debug)]
pub(in crate::control) struct RunningState {
    pub(super) version: Arc<str>,
    pub(super) config: Config,
    pub(super) servers: Lists,
    pub(super) departed: Departed,
    pub(super) hosts: BTreeMap<String, IpAddr>,
    pub(super) members: Vec<Arc<Member>>,
    pub(super) listeners: Vec<Listener>,
    /// Clients are accepted.
    pub(super) accepts: bool,
}

impl RunningState {
    /// Nothing runs yet; `config` is the first configuration, so that no key of it differs.
    pub(in crate::control) fn nothing(config: Config) -> Self {
        Self {
            version: "".into(),
            config,
            servers: Lists::new(),
            departed: Departed::default(),
            hosts: BTreeMap::new(),
            members: Vec::new(),
            listeners: Vec::new(),
            accepts: true,
        }
    }
}

/// A change that is ready: the steps that are left cannot fail.
pub(in crate::control) struct Change {
    pub(super) setup: Setup,
    /// One for each worker.
    pub(super) trees: Vec<Tree>,
    /// The control thread's own.
    pub(super) tree: Tree,
    pub(super) members: Vec<Arc<Member>>,
    /// The members until now.
    pub(super) before: Vec<Arc<Member>>,
    /// Addresses as configured, by number.
    pub(super) listeners: Vec<String>,
    pub(super) warnings: Vec<String>,
    pub(super) opened: Vec<OpenListener>,
    pub(super) steps: Vec<Step>,
}

impl Change {
    /// Whether what runs is already what is wanted.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    pub(in crate::control) fn members(&self) -> &[Arc<Member>] {
        &self.members
    }

    pub(in crate::control) fn loaded(&self) -> &Loaded {
        &self.setup.loaded
    }
}

/// A listener that is bound and not served yet.
pub(super) struct OpenListener {
    pub(super) number: u16,
    /// The address with the port that the system has given.
    pub(super) address: String,
    /// One for each worker.
    pub(super) sockets: Vec<Socket>,
}

/// Prepares changes. It owns the registry of members, which nobody else needs.
pub(in crate::control) struct Preparer {
    pub(in crate::control) registry: Registry,
    pub(in crate::control) workers: usize,
    pub(in crate::control) host_id: u64,
    pub(in crate::control) protocols: Protocols,
    /// Where failed deletes are kept, with the options that it has.
    pub(in crate::control) spool: Option<(SpoolOptions, Arc<Spool>)>,
    /// The routes that have given clients their lease tokens.
    pub(in crate::control) leases: Arc<LeaseTable>,
    /// Where samples of requests go.
    pub(in crate::control) samples: Arc<Samples>,
    /// Where slow requests are kept.
    pub(in crate::control) slow_requests: Arc<SlowRequests>,
    /// Where replies are kept, and by which rules, since the first configuration that keeps any.
    pub(in crate::control) near: Option<(Arc<Near>, Rules)>,
    /// What keeps strangers from choosing keys that collide there.
    pub(in crate::control) seed: [u64; 4],
}

impl Preparer {
    /// Prepares the change from what runs to `setup`.
    ///
    /// # Errors
    /// The configuration cannot be served; nothing is left of the attempt.
    pub(in crate::control) fn prepare(
        &mut self,
        running: &RunningState,
        setup: Setup,
    ) -> Result<Change, ReloadError> {
        // A member that was removed while it was ejected must not return so: nobody probes it any more.
        self.registry.purge();
        let near = self.near.clone();
        let prepared = self.try_prepare(running, setup);
        if prepared.is_err() {
            // The rules that run are those with which the next configuration is compared.
            self.near = near;
            self.registry.purge();
        }
        prepared
    }

    fn try_prepare(&mut self, running: &RunningState, setup: Setup) -> Result<Change, ReloadError> {
        self.registry.set_hosts(setup.hosts.clone());
        let config = &setup.loaded.config;
        let known = running.listeners.iter().map(|known| &*known.address);
        let listeners = numbered(known, config);
        let mut warnings = setup.loaded.warnings.clone();
        let (tree, trees) = self.compile(&setup, &running.config, &listeners, &mut warnings)?;
        let members = tree.members();
        let before = Side {
            version: &running.version,
            config: &running.config,
            departed: &running.departed,
            hosts: &running.hosts,
            members: running.members.len(),
            copies: copies(&running.members),
            accepts: running.accepts,
        };
        let after = Side {
            version: &tree.version,
            config,
            departed: &setup.departed,
            hosts: &setup.hosts,
            members: members.len(),
            copies: copies(&members),
            accepts: running.accepts,
        };
        let steps = plan(&before, &after, &running.listeners, self.workers);
        let (may_fail, steps): (Vec<Step>, Vec<Step>) = steps.into_iter().partition(Step::may_fail);
        let opened = Attempt::default().perform(may_fail, self.workers)?;
        Ok(Change {
            trees,
            tree,
            members,
            before: running.members.clone(),
            listeners,
            warnings,
            opened,
            steps,
            setup,
        })
    }

    /// The control thread's tree, and those of the workers.
    fn compile(
        &mut self,
        setup: &Setup,
        running: &Config,
        listeners: &[String],
        warnings: &mut Vec<String>,
    ) -> Result<(Tree, Vec<Tree>), ReloadError> {
        let registry = &mut self.registry;
        let (config, servers) = (&setup.loaded.config, &setup.servers);
        let version = version(&setup.loaded, servers);
        let mut compiler = Compiler::new(config, servers, registry, self.protocols, &version, self.host_id)?;
        compiler.keep(&setup.departed.servers(), registry)?;
        compiler.keep_deletes(spool(&mut self.spool, config)?);
        compiler.remember_leases(&self.leases);
        compiler.put_samples(&self.samples);
        compiler.keep_slow(&self.slow_requests);
        let near = near(&mut self.near, &self.seed, config, running);
        if let Some((_, spool)) = &self.spool {
            spool.follow_near(near.as_ref().map(|(near, _)| near));
        }
        compiler.keep_replies(near);
        let first = compiler.tree(registry, listeners)?;
        if let Some(spool) = first.tree.spool() {
            let members = first.tree.members();
            let secure = members.iter();
            spool.secure(secure.filter_map(|member| Some((&*member.address, member.tls.clone()?))));
        }
        // Those of the other trees are the same.
        warnings.extend(first.warnings);
        let mut trees = Vec::with_capacity(self.workers);
        for _ in 0..self.workers {
            trees.push(compiler.tree(registry, listeners)?.tree);
        }
        Ok((first.tree, trees))
    }

    /// Forgets the members that no tree names any more.
    pub(super) fn purge(&mut self) {
        self.registry.purge();
    }
}

/// The spool that a configuration asks for: the one that runs, if it is the same.
fn spool(
    known: &mut Option<(SpoolOptions, Arc<Spool>)>,
    config: &Config,
) -> Result<Option<Arc<Spool>>, ReloadError> {
    let Some(options) = &config.spool else {
        *known = None;
        return Ok(None);
    };
    if let Some((running, spool)) = known
        && running == options
    {
        return Ok(Some(Arc::clone(spool)));
    }
    let spool = Arc::new(Spool::open(options.clone()).map_err(ReloadError::Spool)?);
    *known = Some((options.clone(), Arc::clone(&spool)));
    Ok(Some(spool))
}

/// Where replies are kept by this configuration. What the rules that stay the same have kept remains.
fn near(
    known: &mut Option<(Arc<Near>, Rules)>,
    seed: &[u64; 4],
    config: &Config,
    running: &Config,
) -> Option<(Arc<Near>, Rules)> {
    let nothing = Rules::default();
    let before = known.as_ref().map_or(&nothing, |(_, rules)| rules);
    let rules = near_rules(config, before, running);
    if rules.is_empty() && known.is_none() {
        return None;
    }
    let near = match known.take() {
        Some((near, rules)) => {
            if rules.is_empty() {
                near.store.set_memory(config.near.memory());
            }
            near
        }
        None => {
            let near = Near::new(config.near.memory(), *seed);
            near.set_scripts(config.near.scripts == Scripts::Keys);
            Arc::new(near)
        }
    };
    *known = Some((Arc::clone(&near), rules.clone()));
    (!rules.is_empty()).then_some((near, rules))
}

fn copies(members: &[Arc<Member>]) -> BTreeSet<MemberId> {
    let copies = members.iter().filter(|member| member.is_copy());
    copies.map(|member| member.id).collect()
}

/// The same on every proxy that runs the same: a hash of the configuration's text, and of the servers that it
/// refers to.
fn version(loaded: &Loaded, servers: &Lists) -> String {
    let lists = xxhash_rust::xxh3::xxh3_64(format!("{servers:?}").as_bytes());
    format!("{}-{:08x}", loaded.version_hash, lists as u32)
}

/// The steps that may fail, and what undoes them.
#[derive(Default)]
struct Attempt {
    opened: Vec<OpenListener>,
    /// Socket files with their owner and mode until now.
    permitted: Vec<(String, Metadata)>,
}

impl Attempt {
    /// Performs `steps` in order, or undoes them all.
    fn perform(mut self, steps: Vec<Step>, workers: usize) -> Result<Vec<OpenListener>, ReloadError> {
        for step in steps {
            let (address, result) = match step {
                Step::Bind {
                    listener,
                    address,
                    permissions,
                    socket,
                } => {
                    let bound = bind(&address, &permissions, &socket, workers);
                    (address, bound.map(|bound| self.opened(listener, bound)))
                }
                Step::Permit { address, permissions } => {
                    let permitted = self.permit(&address, &permissions);
                    (address, permitted)
                }
                _ => continue,
            };
            if let Err(source) = result {
                self.undo();
                return Err(ReloadError::Bind { address, source });
            }
        }
        Ok(self.opened)
    }

    fn opened(&mut self, number: u16, bound: ListenSockets) {
        let ListenSockets {
            address,
            sockets,
            is_awaited,
        } = bound;
        if is_awaited {
            tracing::warn!(%address, "this host has no such address: clients are accepted as soon as it has");
        }
        self.opened.push(OpenListener {
            number,
            address,
            sockets,
        });
    }

    fn permit(&mut self, address: &str, permissions: &Permissions) -> io::Result<()> {
        let path = address.strip_prefix("unix:").unwrap_or(address);
        if let Ok(before) = fs::metadata(path) {
            self.permitted.push((path.to_owned(), before));
        }
        permit(path, permissions)
    }

    /// Best effort: what cannot be undone is no worse than what the operator asked for.
    fn undo(self) {
        for (path, before) in self.permitted.into_iter().rev() {
            let _ = chown(&path, Some(before.uid()), Some(before.gid()));
            let _ = fs::set_permissions(&path, before.permissions());
        }
        let files = self
            .opened
            .iter()
            .filter_map(|opened| opened.address.strip_prefix("unix:"));
        for path in files {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::schema::SocketOptions;

    fn permissions(mode: u32) -> Permissions {
        Permissions {
            mode: Some(mode),
            owner: None,
        }
    }

    #[test]
    fn a_step_that_fails_undoes_those_before_it() {
        let folder = tempfile::tempdir().unwrap();
        let place = |name: &str| format!("unix:{}", folder.path().join(name).display());
        let mode = |name: &str| fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777;
        let kept = bind(&place("kept"), &permissions(0o600), &SocketOptions::default(), 1).unwrap();
        let steps = vec![
            Step::Bind {
                listener: 1,
                address: place("new"),
                permissions: permissions(0o666),
                socket: SocketOptions::default(),
            },
            Step::Permit {
                address: kept.address.clone(),
                permissions: permissions(0o666),
            },
            Step::Permit {
                address: place("missing"),
                permissions: permissions(0o666),
            },
        ];
        let refused = Attempt::default().perform(steps, 1).err().unwrap();
        assert!(refused.to_string().contains("missing"), "{refused}");
        assert!(!folder.path().join("new").exists());
        assert_eq!(mode("kept"), 0o600);
    }
}
