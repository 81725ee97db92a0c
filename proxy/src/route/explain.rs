//! `explain KEY`: the serving walk with a recorder. Where serving would wait for replies, all children are
//! shown in the order in which they would be asked.

use std::{net::IpAddr, time::Duration};

use super::{
    example::{Example, ExplainError, head},
    explained::{Explained, Step},
    handle::behind_prefix,
    tree::{
        AttemptRecord, Begin, Children, Copies, Leaf, NearNode, Node, NodeId, Of, Query, ScriptRequest, Tree,
        Wait, Wrapped,
    },
};
use crate::{
    copies::Snapshot,
    members::{ClientSource, Distance, DistanceSource, Localities, Locality, Member},
    micros::Micros,
    near::{Entries, EntryReport, HttpOrigin, Question, RuleSettings, VALUE},
    protocol::{Declared, Effect, Protocol, ProtocolSlot, Session},
    random::Random,
};
use proxima_wire::message::{Class, Request};

/// The client for which a walk is explained.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asker<'a> {
    /// The localities that the node agent reports; `None`: no node agent is followed.
    pub localities: Option<&'a Localities>,
    /// The client's place.
    pub locality: Locality,
    /// The client's address; `None`: unknown.
    pub address: Option<IpAddr>,
    /// The time of the walk, since 1970.
    pub unix: Micros,
    /// The time of the walk on the process's clock. `None`: no process serves by this tree.
    pub now: Option<Micros>,
}

impl<'a> Asker<'a> {
    /// A client at this address (`None`: a client of unknown address), at this time since 1970.
    pub fn at(localities: Option<&'a Localities>, address: Option<IpAddr>, unix: Micros) -> Self {
        let source = address.map_or(ClientSource::Unknown, ClientSource::Address);
        let locality = localities.map_or(Locality::NONE, |localities| localities.of_client(&source));
        Self {
            localities,
            locality,
            address,
            unix,
            now: None,
        }
    }

    /// The distance of this member from the client, and the source of that knowledge.
    pub fn distance(&self, member: &Member) -> (Distance, DistanceSource) {
        match self.localities {
            Some(localities) => {
                let (rank, source) = localities.rank(self.locality, member);
                (rank.distance, source)
            }
            None => (member.distance, member.distance_source),
        }
    }
}

/// Walks as one request would.
///
/// # Errors
/// There is no such listener, or this is no request in its protocol.
#[allow(clippy::too_many_arguments)] // These are the request, its client, and the inputs of the decisions.
pub fn explain(
    tree: &Tree,
    snapshot: &Snapshot,
    asker: Asker<'_>,
    listener: usize,
    example: Example<'_>,
    random: &mut Random,
) -> Result<Explained, ExplainError> {
    let root = tree.root(listener).ok_or(ExplainError::NoListener)?;
    let ProtocolSlot { protocol, .. } = tree.spoken(listener).ok_or(ExplainError::NoListener)?;
    let made = example.make(tree, listener, protocol)?;
    let mut recorder = Recorder {
        tree,
        declared: tree.declared(listener),
        protocol,
        asker,
        snapshot,
        random,
        session: &made.session,
        at: root,
        steps: Vec::new(),
        hides_prefix: false,
    };
    let title = format!("{} (configuration {})", made.title, tree.version);
    if let Some(localities) = asker.localities {
        let client = localities.describe(asker.locality);
        recorder.remark(1, &format!("client: {client}, by the node agent"));
    }
    for remark in &made.remarks {
        recorder.remark(1, remark);
    }
    recorder.step(root, &made.request, 1, "");
    let steps = recorder.steps;
    Ok(Explained { title, steps })
}

struct Recorder<'a> {
    tree: &'a Tree,
    declared: Declared<'a>,
    protocol: &'static dyn Protocol,
    asker: Asker<'a>,
    snapshot: &'a Snapshot,
    random: &'a mut Random,
    /// The session of the client that asks.
    session: &'a Session,
    /// The node of the present step.
    at: NodeId,
    steps: Vec<Step>,
    /// Whether routes look at the key without its routing prefix.
    hides_prefix: bool,
}

impl Recorder<'_> {
    fn copies(&mut self, copies: &Copies, head: &Request, message: &[u8], depth: usize, note: &'static str) {
        let tree = self.tree;
        let snapshot = self.snapshot;
        let readable = |child: usize| match copies.children.get(child).map(|&id| tree.node(id)) {
            Some(Node::Leaf(Leaf::Member(member))) => member.is_up() && snapshot.state(member.id).is_read(),
            _ => false,
        };
        let effect = copies.copied.effect(head, message);
        let acks = copies.min_acks;
        let (what, shown): (String, Vec<usize>) = match (effect, &copies.home) {
            (Effect::Look, _) | (Effect::LookAtHome, None) => (
                "reads at the nearest copy that is current".into(),
                copies
                    .nearest(self.asker.locality, readable)
                    .into_iter()
                    .collect(),
            ),
            (Effect::LookAtHome, Some(home)) => {
                let mut scratch = [0; 250];
                let key = self.protocol.key(head, message, &mut scratch);
                (
                    "reads at the copy that decides this key".into(),
                    home.pick_live(key, readable).into_iter().collect(),
                )
            }
            (Effect::Decide, Some(home)) => {
                let mut scratch = [0; 250];
                let key = self.protocol.key(head, message, &mut scratch);
                let first = home.pick_live(key, readable);
                let others = (0..copies.children.len()).filter(|&child| Some(child) != first);
                (
                    format!("decided at the first, told to the others; at least {acks} must have it"),
                    first.into_iter().chain(others).collect(),
                )
            }
            (Effect::Everywhere | Effect::Decide, _) => (
                format!("to every copy; at least {acks} must take it"),
                (0..copies.children.len()).collect(),
            ),
        };
        self.line(depth, note, "copies", &what);
        if shown.is_empty() {
            self.remark(depth + 1, "there is none: an error is answered");
        }
        for child in shown {
            self.step(copies.children[child], message, depth + 1, "");
        }
    }

    /// Where a value comes from that is not kept.
    fn origin(&mut self, origin: &HttpOrigin, key: &[u8], depth: usize) {
        let what = match origin.url.shown(key) {
            Some(url) => format!("GET {url}"),
            None => "an error: no URL of it can name this key".to_owned(),
        };
        self.line(depth, "else ", "origin", &what);
    }

    /// Whether a request is answered from what is kept, and why not.
    fn why_near(&self, near: &NearNode, head: &Request, message: &[u8], key: &[u8]) -> String {
        let mut form = Vec::new();
        let cacheable = self.protocol.cacheable();
        if near.origin.is_some() && head.class == Class::Delete {
            return match cacheable.and_then(|of| of.removed(head, message, &mut form)) {
                Some(_) => "what is kept of the key is dropped".into(),
                None => "passes: this command does not drop a key".into(),
            };
        }
        let may = match (&near.origin, cacheable) {
            (_, None) => false,
            (Some(_), Some(of)) => of.value_frame(head, message, 0, &mut form).is_some(),
            // A client's own form is not known here; the plain one is the most frequent.
            (None, Some(of)) => of.form(0, head, message, &mut form),
        };
        let form = if near.origin.is_some() { VALUE } else { &form };
        let Some(rule) = near.rule(head.command, key) else {
            return match near.origin.is_some() && may && head.class == Class::Read {
                true => "not kept: no rule is for this request".into(),
                false => "passes: no rule is for this request".into(),
            };
        };
        let RuleSettings { ttl, stale, .. } = rule.settings();
        let name = &rule.name;
        if head.class != Class::Read || !may {
            return format!("passes: no reply to this command is kept (rule {name})");
        }
        if !rule.is_on() {
            let word = if near.origin.is_some() {
                "not kept"
            } else {
                "passes"
            };
            return format!("{word}: rule {name} is off (ttl 0)");
        }
        let until = Duration::from(ttl + stale);
        let promise = format!("what others change at the servers is seen after {until:?} at most");
        let Some(now) = self.asker.now else {
            return format!("rule {name}: kept for {:?}; {promise}", Duration::from(ttl));
        };
        let question = Question { rule, key, form };
        let failure = near
            .origin
            .as_ref()
            .and_then(|_| near.near.failure(&question, now));
        match Entries(&near.near).of(&question, now) {
            Some(EntryReport { bytes: None, .. }) => {
                format!("passes: the reply is known to be too large for rule {name}")
            }
            Some(EntryReport {
                bytes: Some(bytes),
                age,
                ..
            }) => {
                let word = if age >= ttl { "a stale hit" } else { "a hit" };
                let age = Duration::from_millis(age.0 / 1000);
                format!("{word} by rule {name}, {bytes} bytes, {age:?} old; {promise}")
            }
            None if let Some(failure) = &failure => {
                format!(
                    "the origin has failed a moment ago, and is left alone (rule {name}): {}",
                    failure.text
                )
            }
            None => format!(
                "a miss: it is fetched and kept by rule {name} for {:?}; {promise}",
                Duration::from(ttl)
            ),
        }
    }

    /// A handle decides.
    fn line(&mut self, depth: usize, note: &'static str, name: &'static str, why: &str) {
        self.push(depth, note, name, format!(": {why}"), None);
    }

    /// A word on the step before.
    fn remark(&mut self, depth: usize, text: &str) {
        self.push(depth, "", "", text.to_owned(), None);
    }

    fn push(
        &mut self,
        depth: usize,
        note: &'static str,
        name: &'static str,
        text: String,
        end: Option<String>,
    ) {
        self.steps.push(Step {
            depth,
            note,
            name,
            text,
            node: (!name.is_empty()).then_some(self.at.0),
            end,
        });
    }

    // This function is longer than 80 lines: it is one `match` with one arm for each shape of node.
    fn step(&mut self, node: NodeId, message: &[u8], depth: usize, note: &'static str) {
        let protocol = self.protocol;
        let Some(head) = head(self.declared, protocol, self.session, message) else {
            return;
        };
        let mut scratch = [0; 250];
        let key = protocol.key(&head, message, &mut scratch);
        let (prefix, behind) = match self.hides_prefix {
            true => behind_prefix(key),
            false => (&key[..0], key),
        };
        let query = Query {
            command: head.command,
            class: head.class,
            key: behind,
            protocol,
            locality: self.asker.locality,
            unix: self.asker.unix,
            of: Of::Example(&head, message, self.session),
        };
        self.at = node;
        match self.tree.node(node) {
            Node::Choose { handle, children } => {
                let choices = Children {
                    tree: self.tree,
                    ids: children,
                    snapshot: self.snapshot,
                    class: head.class,
                };
                let chosen = handle.choose(&query, &choices, self.random);
                let why = handle.why(&query, &choices, chosen);
                self.line(depth, note, handle.name(), &why);
                match children.get(chosen) {
                    Some(&child) => self.step(child, message, depth + 1, ""),
                    None => self.remark(depth + 1, "no such child: an error is answered"),
                }
            }
            Node::ByClient { handle, children } => {
                let chosen = handle.choose(self.asker.address, children.len());
                self.line(depth, note, handle.name(), &handle.why(self.asker.address));
                match children.get(chosen) {
                    Some(&child) => self.step(child, message, depth + 1, ""),
                    None => self.remark(depth + 1, "no such child: an error is answered"),
                }
            }
            Node::Gather { name, wait, children } => {
                let rule = match wait {
                    Wait::All => "to all, the worst reply when all have answered",
                    Wait::Majority => "to all, the reply that more than half agree on",
                    Wait::Fastest => "to all, the first good reply",
                    Wait::Initial => "to all, the first child's reply",
                    Wait::Hit => "to all, the first reply that has the key",
                    Wait::None => "to all, a miss at once",
                };
                self.line(depth, note, name, rule);
                for &child in children {
                    self.step(child, message, depth + 1, "");
                }
            }
            Node::Fan { handle, children } => {
                let mut others = Vec::new();
                let first = handle.choose(&query, self.random, &mut others);
                self.line(depth, note, handle.name(), &handle.why(&query));
                match children.get(first) {
                    Some(&child) => self.step(child, message, depth + 1, ""),
                    None => self.remark(depth + 1, "no such child: an error is answered"),
                }
                for other in others {
                    if let Some(&child) = children.get(other as usize) {
                        self.step(child, message, depth + 1, "copy ");
                    }
                }
            }
            Node::Script { handle, children } => {
                let asked = ScriptRequest {
                    request: &head,
                    message,
                    command: protocol.command_name(head.command),
                    key,
                    unix: self.asker.unix,
                    largest: usize::MAX,
                    chance: 0,
                };
                let begin = handle.begin(&asked);
                self.line(depth, note, handle.name(), &handle.why());
                let shown: Vec<(&str, usize)> = match begin {
                    Begin::Pass(child) => vec![("", child)],
                    Begin::Fail(_, text) => {
                        self.remark(depth + 1, text);
                        Vec::new()
                    }
                    Begin::Send(sent) => {
                        let notes = std::iter::once("").chain(std::iter::repeat("copy "));
                        notes.zip(sent.iter().map(|sent| sent.child)).collect()
                    }
                    Begin::Run(_, turn) => {
                        let first = turn.asks.first().map_or(0, |ask| ask.child);
                        let others = (0..children.len()).filter(|&child| child != first);
                        let others = others.map(|child| ("perhaps then ", child));
                        std::iter::once(("first ", first)).chain(others).collect()
                    }
                };
                for (note, child) in shown {
                    if let Some(&child) = children.get(child) {
                        self.step(child, message, depth + 1, note);
                    }
                }
            }
            Node::Attempt { handle, children } => {
                let goes_on = handle.goes_on(&query);
                let why = match goes_on {
                    true => handle.why(),
                    false => "for this command only the first".into(),
                };
                self.line(depth, note, handle.name(), &why);
                let choices = Children {
                    tree: self.tree,
                    ids: children,
                    snapshot: self.snapshot,
                    class: head.class,
                };
                let (mut tried, mut note) = (AttemptRecord::first(0), "first ");
                while let Some(&child) = children.get(tried.child) {
                    self.step(child, message, depth + 1, note);
                    match handle.follow(&query, &tried, &choices) {
                        Some(next) if goes_on && (tried.count as usize) < children.len() => tried.add(next),
                        _ => break,
                    }
                    note = "then ";
                }
            }
            Node::Wrap { handle, child } => {
                let wrapped = handle.request(&head, message, &query, self.random);
                if wrapped == Wrapped::Watch {
                    // It is not sent, and so it is over.
                    handle.left();
                }
                self.line(depth, note, handle.name(), &handle.why());
                if matches!(wrapped, Wrapped::Park(_)) && self.asker.now.is_some() {
                    self.remark(depth + 1, "it has to wait now");
                }
                let mut changed = Vec::new();
                let hidden = self.hides_prefix;
                self.hides_prefix = match wrapped {
                    Wrapped::Hide => true,
                    Wrapped::Bare(_) => false,
                    _ => hidden,
                };
                let key = match &wrapped {
                    Wrapped::Key(key) => [prefix, key].concat(),
                    Wrapped::Bare(key) => key.clone(),
                    _ => Vec::new(),
                };
                let change = match &wrapped {
                    Wrapped::Key(_) | Wrapped::Bare(_) => crate::protocol::Change {
                        key: Some(&key),
                        ttl: None,
                    },
                    Wrapped::Ttl(ttl) => crate::protocol::Change {
                        key: None,
                        ttl: Some(*ttl),
                    },
                    _ => crate::protocol::Change::default(),
                };
                if protocol.rewrite(&head, message, &change, &mut changed) {
                    changed.extend_from_slice(message.get(head.head as usize..).unwrap_or_default());
                    self.step(*child, &changed, depth + 1, "");
                } else if change.key.is_none() && change.ttl.is_none() {
                    self.step(*child, message, depth + 1, "");
                } else {
                    self.remark(depth + 1, "the result is no request: an error is answered");
                }
                self.hides_prefix = hidden;
            }
            Node::Near(near) => {
                let why = self.why_near(near, &head, message, key);
                self.line(depth, note, "near", &why);
                match &near.origin {
                    Some(origin) if !why.starts_with("passes") => self.origin(origin, key, depth + 1),
                    _ => self.step(near.child, message, depth + 1, "else "),
                }
            }
            Node::Copies(copies) => self.copies(copies, &head, message, depth, note),
            Node::Leaf(Leaf::Member(member)) => {
                let (distance, source) = self.asker.distance(member);
                let (distance, source) = (distance.name(), source.name());
                let state = match member.socket {
                    Some(_) => format!("{:?}", member.health.state()).to_lowercase(),
                    None => "ejected as its name does not resolve".into(),
                };
                let copy_state = match member.is_copy() {
                    true => format!(", copy {:?}", self.snapshot.state(member.id)).to_lowercase(),
                    false => String::new(),
                };
                let kubernetes_node = member.pod.as_ref().and_then(|pod| pod.node.as_ref());
                let places = [("node", kubernetes_node), ("zone", member.zone.as_ref())];
                let places = places
                    .iter()
                    .filter_map(|(what, name)| Some(format!(", {what} {}", (*name)?)));
                let text = format!(
                    " {} ({}) of pool {}{}: distance {distance} by {source}, {state}{copy_state}, {} failures in a row",
                    member.name,
                    member.address,
                    member.pool,
                    places.collect::<String>(),
                    member.health.failures()
                );
                self.push(depth, note, "member", text, Some(member.address.clone()));
                let others = member.pool.state.as_ref().and_then(|state| state.others());
                if let Some(others) = others.filter(|others| others.may_be()) {
                    self.remark(depth + 1, &format!("a `causal` read is `strict` here: {others}"));
                }
                if self.tree.spool_of(node).is_some() {
                    self.remark(
                        depth + 1,
                        "a delete that fails is kept, and sent when the server is back",
                    );
                }
            }
            Node::Leaf(Leaf::Embedded) => self.line(depth, note, "embedded", "the store in this process"),
            Node::Leaf(Leaf::Null | Leaf::OverLimit) => self.line(depth, note, "null", "a miss"),
            Node::Leaf(Leaf::Discard) => self.line(depth, note, "dev_null", "a miss, which is counted"),
            Node::Leaf(Leaf::Error(error)) => {
                let text = error.text.to_string();
                self.push(depth, note, "error", format!(": {text}"), Some(text));
            }
        }
    }
}
