//! `/tree`: the route tree of the running configuration.

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use serde::Serialize;

use super::Shared;
use crate::control::NodeView;

/// The form of the answer.
const VERSION: u32 = 1;

#[derive(Serialize)]
struct Page {
    version: u32,
    configuration: String,
    listeners: Vec<Listener>,
    nodes: Vec<Node>,
}

#[derive(Serialize)]
struct Listener {
    address: String,
    number: usize,
    protocol: &'static str,
    /// The number of the node where its requests enter.
    root: u32,
}

#[derive(Serialize)]
struct Node {
    id: u32,
    /// The name of its route, or `member`, `embedded`, `null` or `error`.
    handle: String,
    children: Vec<u32>,
    /// For a member: its pool, and its name there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<String>,
}

impl From<NodeView> for Node {
    fn from(view: NodeView) -> Self {
        let (pool, member) = view.member.unzip();
        Self {
            id: view.id,
            handle: view.handle,
            children: view.children,
            pool,
            member,
        }
    }
}

pub(super) async fn show(State(proxy): Shared) -> Response {
    let view = proxy.view();
    let (nodes, roots) = proxy.nodes();
    let listeners = view
        .listeners
        .into_iter()
        .zip(view.protocols)
        .zip(roots)
        .enumerate();
    let listeners = listeners.filter_map(|(number, ((address, protocol), root))| {
        Some(Listener {
            address: address?,
            number,
            protocol,
            root: root?,
        })
    });
    Json(Page {
        version: VERSION,
        configuration: view.version,
        listeners: listeners.collect(),
        nodes: nodes.into_iter().map(Node::from).collect(),
    })
    .into_response()
}
