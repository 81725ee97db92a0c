//! Builds routes from handles as they may be written: objects, names, and short forms such as
//! `AllSyncRoute|Pool|A`.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    handles::{self, Args},
    object::{Object, text},
    pools::{ListedPool, Pools},
    settings::Settings,
};
use crate::config::{
    Diagnostic, Place,
    document::{DEPTH_LIMIT, Node, Value, shortened},
    reading::Reading,
    routes,
    schema::{Children, Leaf, Queue, Route, Server},
};

/// Routes of one list at most. A pool in a list among other handles is written out.
const LIST_LIMIT: usize = 100_000;

/// The result of building something that stands where handles are expected.
#[derive(Clone, Debug)]
pub(super) enum BuiltHandles {
    /// A handle.
    One(Route),
    /// `Pool|A`: all servers of a pool that is not empty.
    Members(String),
    /// Any number of handles.
    List(Vec<Route>),
}

impl BuiltHandles {
    /// As the children of a route.
    pub(super) fn children(self) -> Children {
        match self {
            Self::One(route) => Children::List(vec![route]),
            Self::Members(pool) => Children::Pool(pool),
            Self::List(routes) => Children::List(routes),
        }
    }
}

/// Builds the tree. A handle with a name is built once and shared.
#[derive(Debug)]
pub(super) struct Builder {
    pub(super) pools: Pools,
    /// Are deletes kept that servers have not taken?
    pub(super) keeps_deletes: bool,
    /// Do `shard_splits` count?
    pub(super) splits_shards: bool,
    /// The most copies of requests that are under way to a shadow, for each worker.
    pub(super) most_shadowed: usize,
    /// The most requests that are under way to a server, for each worker. `None`: there is no limit.
    most_in_flight: Option<usize>,
    /// How many further ones wait.
    queue: Option<Queue>,
    /// Is the configuration refused for what is otherwise left out of it?
    pub(super) is_strict: bool,
    /// Finished routes by name.
    pub(super) routes: BTreeMap<String, Route>,
    /// Handles by name as they are written in `named_handles`.
    named: BTreeMap<String, Node>,
    built: BTreeMap<String, BuiltHandles>,
    /// Named handles that cannot be built, each with the reason. As in mcrouter this matters where a route
    /// names them.
    unbuilt: BTreeMap<String, Diagnostic>,
    building: BTreeSet<String>,
    depth: usize,
}

impl Builder {
    pub(super) fn new(pools: Pools, settings: &Settings) -> Self {
        Self {
            pools,
            keeps_deletes: settings.keeps_deletes,
            splits_shards: settings.splits_shards,
            most_shadowed: settings.most_shadowed,
            most_in_flight: settings.most_in_flight,
            queue: settings.queue.clone(),
            is_strict: settings.is_strict,
            routes: BTreeMap::new(),
            named: BTreeMap::new(),
            built: BTreeMap::new(),
            unbuilt: BTreeMap::new(),
            building: BTreeSet::new(),
            depth: 0,
        }
    }

    /// Reads `named_handles`: a list of objects with names, or handles by name.
    pub(super) fn name_handles(&mut self, node: &Node, cx: &mut Reading) -> Result<(), Diagnostic> {
        match &node.value {
            Value::Map(entries) => {
                self.named.extend(
                    entries
                        .iter()
                        .map(|(name, node)| (name.text.clone(), node.clone())),
                );
            }
            Value::List(nodes) => {
                for node in nodes {
                    let name = text(Object::of(node, cx)?.require("name", cx)?, cx)?;
                    self.named.entry(name).or_insert_with(|| node.clone());
                }
            }
            _ => return Err(cx.expected(node, "a list or an object")),
        }
        for name in self.named.keys().cloned().collect::<Vec<_>>() {
            let known = cx.mistakes.len();
            let built = self.by_name(&name, node.at, cx);
            let fault = cx.mistakes.drain(known..).next();
            if let Err(why) = fault.map_or(built, Err) {
                self.unbuilt.insert(name, why);
            }
        }
        Ok(())
    }

    /// Warns of the named handles that cannot be built. No route needs them.
    pub(super) fn warn_of_unbuilt(&self, cx: &mut Reading) {
        cx.warnings.extend(self.unbuilt.values().map(|why| Diagnostic {
            problem: format!("no route uses this handle, and none could: {}", why.problem),
            ..why.clone()
        }));
    }

    /// Builds what stands at `node`.
    pub(super) fn build(&mut self, node: &Node, cx: &mut Reading) -> Result<BuiltHandles, Diagnostic> {
        // Names and short forms nest as objects do, so the limit of the text is not enough.
        if self.depth >= DEPTH_LIMIT {
            return Err(cx.refuse(
                node.at,
                format!("handles are nested more than {DEPTH_LIMIT} deep"),
            ));
        }
        self.depth += 1;
        let built = match &node.value {
            Value::List(nodes) => self.list(nodes, cx),
            Value::Map(_) => self.object(node, cx),
            Value::Scalar { text, quoted: true } => self.text(text, node.at, cx),
            Value::Scalar { .. } => Err(cx.expected(node, "a route handle")),
        };
        self.depth -= 1;
        built
    }

    /// Builds the one handle that must stand at `node`.
    pub(super) fn one(&mut self, node: &Node, cx: &mut Reading) -> Result<Route, Diagnostic> {
        let mut routes = match self.build(node, cx)? {
            BuiltHandles::One(route) => return Ok(route),
            BuiltHandles::Members(pool) => self.members(&pool),
            BuiltHandles::List(routes) => routes,
        };
        match (routes.pop(), routes.is_empty()) {
            (Some(route), true) => Ok(route),
            _ => Err(cx.refuse(
                node.at,
                format!(
                    "a list stands where one route handle is asked, line: {}",
                    node.at.line
                ),
            )),
        }
    }

    /// Builds children. `None` without children.
    pub(super) fn children(
        &mut self,
        node: Option<&Node>,
        cx: &mut Reading,
    ) -> Result<Option<Children>, Diagnostic> {
        Ok(match node.map(|node| self.build(node, cx)).transpose()? {
            Some(BuiltHandles::One(route)) => Some(Children::List(vec![route])),
            Some(BuiltHandles::Members(pool)) => Some(Children::Pool(pool)),
            Some(BuiltHandles::List(routes)) => {
                Some(Children::List(routes)).filter(|children| !is_empty(children))
            }
            None => None,
        })
    }

    /// The number of these children.
    pub(super) fn count(&self, children: &Children) -> usize {
        match children {
            Children::Pool(name) => self.pools.listed.get(name).map_or(0, ListedPool::len),
            Children::List(routes) => routes.len(),
        }
    }

    /// Makes a route fit to stand in several places: it gets a name, unless it is a leaf.
    pub(super) fn share(&mut self, route: Route, what: &str, at: Place) -> Route {
        if matches!(
            route,
            Route::Named(_)
                | Route::Leaf(Leaf::Pool(_))
                | Route::Leaf(Leaf::Member(_))
                | Route::Leaf(Leaf::Null)
                | Route::Leaf(Leaf::Discard)
                | Route::Leaf(Leaf::Error(_))
        ) {
            return route;
        }
        let mut name = format!("{what} line {}", at.line);
        while self.routes.contains_key(&name) || self.named.contains_key(&name) {
            name.push('\'');
        }
        self.routes.insert(name.clone(), route);
        Route::Named(name)
    }

    fn list(&mut self, nodes: &[Node], cx: &mut Reading) -> Result<BuiltHandles, Diagnostic> {
        if let [only] = nodes {
            return cx.within("[0]", |cx| self.build(only, cx));
        }
        let mut routes = Vec::new();
        for (i, node) in nodes.iter().enumerate() {
            match cx.within(format!("[{i}]"), |cx| self.build(node, cx))? {
                BuiltHandles::One(route) => routes.push(route),
                BuiltHandles::Members(pool) => routes.extend(self.members(&pool)),
                BuiltHandles::List(more) => routes.extend(more),
            }
            if routes.len() > LIST_LIMIT {
                return Err(cx.refuse(
                    node.at,
                    format!("more than {LIST_LIMIT} route handles in one list"),
                ));
            }
        }
        Ok(BuiltHandles::List(routes))
    }

    /// All handles of what was built, one by one.
    pub(super) fn list_of(&self, built: BuiltHandles) -> Vec<Route> {
        match built {
            BuiltHandles::One(route) => vec![route],
            BuiltHandles::Members(pool) => self.members(&pool),
            BuiltHandles::List(routes) => routes,
        }
    }

    /// The failure domain of a server of a pool; `None` if the route is no server, or the server has no
    /// failure domain.
    pub(super) fn domain(&self, route: &Route) -> Option<u32> {
        let Route::Leaf(Leaf::Member(member)) = route else {
            return None;
        };
        let (pool, address) = member.split_once('/')?;
        let listed = self.pools.listed.get(pool)?;
        let place = listed
            .servers
            .iter()
            .position(|server| server.address == address)?;
        listed.domains.get(place).copied()
    }

    fn members(&self, pool: &str) -> Vec<Route> {
        let servers = self.pools.listed.get(pool).map_or(&[][..], |pool| &pool.servers);
        servers.iter().map(|server| member(pool, server)).collect()
    }

    /// The children of a pool: its servers, or a list if handles stand among them. `None` if the pool is
    /// empty.
    pub(super) fn children_of(
        &mut self,
        pool: &str,
        cx: &mut Reading,
    ) -> Result<Option<BuiltHandles>, Diagnostic> {
        let Some(listed) = self.pools.listed.get(pool).cloned() else {
            return Ok(None);
        };
        if listed.handles.is_empty() && self.most_in_flight.is_none() {
            return Ok((!listed.servers.is_empty()).then(|| BuiltHandles::Members(pool.to_owned())));
        }
        if listed.len() == 0 {
            return Ok(None);
        }
        let mut servers = listed.servers.iter();
        let mut routes = Vec::new();
        for number in 0..listed.len() {
            match listed.handles.get(&number) {
                Some(node) => routes.push(self.one(node, cx)?),
                None => routes.extend(servers.next().map(|server| self.limited(pool, server))),
            }
        }
        Ok(Some(BuiltHandles::List(routes)))
    }

    /// A server of a pool, with the limit of its requests under way.
    fn limited(&mut self, pool: &str, server: &Server) -> Route {
        let server = member(pool, server);
        let (Some(most), Route::Leaf(Leaf::Member(name))) = (self.most_in_flight, &server) else {
            return server;
        };
        // All routes to it have one limit.
        let name = format!("limit of {name}");
        let limit = Route::one(
            routes::OutstandingLimit {
                most,
                queue: self.queue.clone(),
            },
            server,
        );
        self.routes.entry(name.clone()).or_insert(limit);
        Route::Named(name)
    }

    /// Builds a name, or a type, perhaps with a parameter behind `|`.
    fn text(&mut self, text: &str, at: Place, cx: &mut Reading) -> Result<BuiltHandles, Diagnostic> {
        if text.is_empty() {
            return Ok(BuiltHandles::List(Vec::new()));
        }
        if let Some(built) = self.by_name(text, at, cx)? {
            return Ok(built);
        }
        let (kind, parameter) = match text.split_once('|') {
            Some((kind, rest)) => (
                kind,
                Some(Node {
                    at,
                    value: Value::Scalar {
                        text: rest.to_owned(),
                        quoted: true,
                    },
                }),
            ),
            None => (text, None),
        };
        handles::build(self, kind, at, &Args::short(at, parameter.as_ref()), cx)
    }

    fn object(&mut self, node: &Node, cx: &mut Reading) -> Result<BuiltHandles, Diagnostic> {
        let object = Object::of(node, cx)?;
        let name = object.take("name", cx, text)?;
        if let Some(built) = name.as_ref().and_then(|name| self.built.get(name)) {
            return Ok(built.clone());
        }
        let kind_node = object.require("type", cx)?;
        let kind = cx.within("type", |cx| text(kind_node, cx))?;
        let built = handles::build(self, &kind, kind_node.at, &Args::object(object), cx)?;
        Ok(match name {
            Some(name) => self.keep(name, built),
            None => built,
        })
    }

    /// The handle of that name, which is built at its first use.
    fn by_name(
        &mut self,
        name: &str,
        at: Place,
        cx: &mut Reading,
    ) -> Result<Option<BuiltHandles>, Diagnostic> {
        if let Some(built) = self.built.get(name) {
            return Ok(Some(built.clone()));
        }
        if let Some(why) = self.unbuilt.get(name) {
            return Err(why.clone());
        }
        let Some(node) = self.named.get(name).cloned() else {
            return Ok(None);
        };
        if !self.building.insert(name.to_owned()) {
            let problem = format!(
                "the named handle `{}` leads back to itself, line: {}",
                shortened(name),
                at.line
            );
            return Err(cx.refuse(at, problem));
        }
        let built = self.build(&node, cx);
        self.building.remove(name);
        let built = built?;
        Ok(Some(match self.built.get(name) {
            // An object in `named_handles` stays under the name that it has.
            Some(kept) => kept.clone(),
            None => self.keep(name.to_owned(), built),
        }))
    }

    fn keep(&mut self, name: String, built: BuiltHandles) -> BuiltHandles {
        let built = match built {
            BuiltHandles::One(route) => {
                self.routes.insert(name.clone(), route);
                BuiltHandles::One(Route::Named(name.clone()))
            }
            several => several,
        };
        self.built.insert(name, built.clone());
        built
    }
}

fn member(pool: &str, server: &Server) -> Route {
    Route::Leaf(Leaf::Member(format!("{pool}/{}", server.address)))
}

fn is_empty(children: &Children) -> bool {
    matches!(children, Children::List(routes) if routes.is_empty())
}
