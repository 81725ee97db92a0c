//! Requests without a key that concern several members.

use std::sync::Arc;

use proxima_wire::message::{Outcome, Request};

use super::{ReplyRole, errors::OUT_OF_MEMORY, input::Input};
use crate::{
    engine::{ClientId, Engine, ReplyTo},
    members::Member,
    protocol::Failed,
    route::{About, NodeId, Walk},
};

impl Engine {
    /// Sends a request to every member that it concerns, and joins the replies. One whose replies cannot be
    /// joined goes to one of them.
    pub(super) fn spread_everywhere(
        &mut self,
        id: ClientId,
        request: &Request,
        message: &[u8],
        input: &Input<'_>,
    ) {
        if self.clients.over_memory {
            return self.reject(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        let Some(walk) = self.walk_of(id, request, message, input) else {
            return;
        };
        let Walk { origin, tree, .. } = walk;
        let listener = usize::from(origin.listener);
        let concerned = self.concerned_by(&walk);
        let is_concerned = |node: &&NodeId| is_among(&concerned, tree.member_at(**node));
        let nodes: Vec<NodeId> = tree
            .everywhere(listener)
            .iter()
            .filter(is_concerned)
            .copied()
            .collect();
        let is_up = |node: &&NodeId| tree.member_at(**node).is_none_or(|member| member.is_up());
        let one = nodes.iter().find(is_up).or(nodes.first()).copied();
        match (origin.protocol.spread(request), one) {
            (Some(join), Some(_)) if nodes.len() > 1 => {
                for node in nodes {
                    self.send_part(id, &walk, (node, message));
                }
                self.close_parts(id, join, &[]);
            }
            (_, Some(one)) if !tree.reaches_store(listener) => {
                let size = tree.cost(listener, request.class, message.len());
                let Some(client) = self.clients.table.get_mut(id) else {
                    return;
                };
                let slots = &mut client.slots;
                let seq = slots.push(
                    request.command,
                    request.is_quiet,
                    ReplyRole::Whole,
                    size,
                    self.now,
                );
                self.walk(one, &walk.to(ReplyTo::Client { client: id, seq }));
            }
            // No member knows anything of it: the route itself answers.
            _ => self.route(id, request, message, input),
        }
    }

    /// Sends a request to one of the members that it concerns, as the codec says.
    pub(super) fn visit(&mut self, id: ClientId, request: &Request, message: &[u8], input: &Input<'_>) {
        if self.clients.over_memory {
            return self.reject(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        let Some(walk) = self.walk_of(id, request, message, input) else {
            return;
        };
        let Walk { origin, tree, .. } = walk;
        let concerned = self.concerned_by(&walk);
        let all = tree.visits(usize::from(origin.listener)).iter();
        let visits: Vec<(u16, NodeId)> = all
            .filter(|(_, node)| is_among(&concerned, tree.member_at(*node)))
            .copied()
            .collect();
        let numbers: Vec<u16> = visits.iter().map(|&(number, _)| number).collect();
        if numbers.is_empty() {
            return self.route(id, request, message, input);
        }
        let mut out = Vec::new();
        let visited = origin.protocol.visit(message, &numbers, &mut out);
        match (visited, origin.protocol.spread(request)) {
            (Some(at), Some(join)) if let Some(&(number, node)) = visits.get(at) => {
                self.send_part(id, &walk, (node, &out));
                let next = visits.get(at + 1).map_or(0, |&(next, _)| u32::from(next) + 1);
                self.close_parts(id, join, &[u32::from(number) + 1, next]);
            }
            _ => self.answer_here(id, &out, request.is_quiet),
        }
    }

    /// The walk of a request whose slots are not known yet; `None`: its client has gone.
    fn walk_of<'a>(
        &self,
        id: ClientId,
        request: &'a Request,
        message: &'a [u8],
        input: &Input<'a>,
    ) -> Option<Walk<'a>> {
        Some(Walk {
            tree: input.tree,
            origin: self.clients.table.get(id)?.origin(id),
            request,
            message,
            to: ReplyTo::Client { client: id, seq: 0 },
        })
    }

    /// The members that a request without a key concerns: of a primary with its replicas, the primary.
    fn concerned_by(&mut self, walk: &Walk<'_>) -> Vec<Arc<Member>> {
        let mut found = Vec::new();
        if let Some(root) = walk.tree.root(usize::from(walk.origin.listener)) {
            let about = match walk.origin.protocol.asks_for_keys(walk.request.command) {
                true => About::Keys,
                false => About::Everything,
            };
            self.concerned(root, walk, about, &mut found);
        }
        found.retain(|member| walk.tree.is_server(member));
        found
    }
}

/// Is this one of the members? What is no member (the embedded store) is always concerned.
fn is_among(members: &[Arc<Member>], member: Option<&Arc<Member>>) -> bool {
    member.is_none_or(|member| members.iter().any(|other| other.id == member.id))
}
