//! The ways of sampled requests: the nodes that they come by, and the member that they lead to.

use crate::{
    control::Proxy,
    members::Member,
    route::{Example, Leaf, Node, NodeId, Sample, Tree},
};

/// The way of a request by the running configuration.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    /// The numbers of the nodes that it comes by.
    pub nodes: Vec<u32>,
    /// The first member to which it leads: its pool, and its name there. `None`: it leads to none.
    pub member: Option<(String, String)>,
    /// The pool of that, or `embedded` where it leads to the store in this process.
    pub pool: Option<String>,
}

/// What stands for the store in this process where others have their pool. No pool has this name.
const EMBEDDED: &str = "embedded";

/// A node of the tree, as operators see it.
#[derive(Clone, Debug)]
pub struct NodeView {
    /// Its number.
    pub id: u32,
    /// The name of its route, or `member`, `embedded`, `null` or `error`.
    pub handle: String,
    /// The numbers of its children.
    pub children: Vec<u32>,
    /// For a member: its pool, and its name there.
    pub member: Option<(String, String)>,
}

impl Proxy {
    /// The way of a sampled request. It is empty if the listener has gone since.
    pub fn trace(&self, sample: &Sample) -> Trace {
        let example = Example::Key {
            command: sample.command,
            key: &sample.key,
        };
        let Ok(explained) = self.explained(sample.listener.into(), example, sample.client) else {
            let rooms = self.rooms();
            let members = rooms.configuration.tree().members();
            let found = members.iter().find(|member| Some(member.id) == sample.member);
            let member = found.map(|member| names(member));
            let pool = member.as_ref().map(|(pool, _)| pool.clone());
            return Trace {
                nodes: Vec::new(),
                member,
                pool,
            };
        };
        // Routes to which only an answer can lead are no part of the way.
        let is_taken = |note: &str| !note.contains("then");
        let steps = explained.steps.iter().filter(|step| is_taken(step.note));
        let nodes: Vec<u32> = steps.filter_map(|step| step.node).collect();
        let rooms = self.rooms();
        let tree = rooms.configuration.tree();
        let member = nodes.iter().find_map(|&node| tree.member_at(NodeId(node)));
        let member = member.map(|member| names(member));
        let is_embedded = |&node: &u32| matches!(tree.node(NodeId(node)), Node::Leaf(Leaf::Embedded));
        let pool = match &member {
            Some((pool, _)) => Some(pool.clone()),
            None => nodes.iter().any(is_embedded).then(|| EMBEDDED.to_owned()),
        };
        Trace { nodes, member, pool }
    }

    /// The nodes of the running configuration's tree, and the node where each listener's requests enter.
    pub fn nodes(&self) -> (Vec<NodeView>, Vec<Option<u32>>) {
        let rooms = self.rooms();
        let tree = rooms.configuration.tree();
        let roots = (0..tree.protocols().len()).map(|listener| Some(tree.root(listener)?.0));
        let roots: Vec<Option<u32>> = roots.collect();
        let mut nodes: Vec<NodeView> = Vec::new();
        let mut due: Vec<u32> = roots.iter().rev().flatten().copied().collect();
        let mut seen = vec![false; tree.all().count()];
        while let Some(id) = due.pop() {
            match seen.get_mut(id as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => continue,
            }
            let node = view(tree, id);
            due.extend(node.children.iter().rev());
            nodes.push(node);
        }
        (nodes, roots)
    }
}

fn view(tree: &Tree, id: u32) -> NodeView {
    let member = tree.member_at(NodeId(id));
    let (handle, children) = tree.shape(NodeId(id));
    NodeView {
        id,
        handle: handle.to_owned(),
        children: children.iter().map(|child| child.0).collect(),
        member: member.map(|member| names(member)),
    }
}

fn names(member: &Member) -> (String, String) {
    (member.pool.name.to_string(), member.name.clone())
}
