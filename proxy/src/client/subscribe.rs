//! A client changes its subscriptions, which are at one server or several.
//!
//! A client has a connection of its own to each server where it has subscriptions. A change goes to all
//! servers concerned, or to none: it is sent when there is a connection to each of them (`subscriber.rs`).

use std::{rc::Rc, sync::Arc};

use proxima_wire::message::{Outcome, Request, Span};

use super::{
    ReplyRole,
    errors::{OUT_OF_MEMORY, REMOVED},
    input::Input,
    subscriptions::{Change, Part, Subscriptions},
};
use crate::{
    engine::{ClientId, Engine, LaneId, ReplyTo},
    members::Member,
    micros::Micros,
    protocol::{Channels, Failed, Subject, SubscriptionChange},
    route::{About, Walk},
};

const NOWHERE: &str = "its route leads the channel to no single server: lead it to a pool";
const ALL_DOWN: &str = "its route leads to no server that is up: lead it to a pool";

/// The reason why nothing is changed, and the server that is its cause, if there is one.
type Rejection = (Outcome, &'static str, Option<Arc<Member>>);

impl Engine {
    /// Serves a request that changes the client's subscriptions.
    pub(super) fn subscribe(&mut self, id: ClientId, request: &Request, message: &[u8], input: &Input<'_>) {
        if self.clients.over_memory {
            return self.reject(id, request, &Failed::here(Outcome::Overloaded, OUT_OF_MEMORY));
        }
        if self.end_outdated(id) {
            return;
        }
        let Some(protocol) = self.clients.table.get(id).map(|client| client.protocol) else {
            return;
        };
        let Some(channels) = protocol.channels() else {
            return;
        };
        let Some(made) = channels.change(request.command) else {
            return;
        };
        let mut names = Vec::new();
        channels.names(message, &mut |name| names.push(name));
        let change = match (made.adds, made.subject) {
            (false, _) => Ok(self.leaving(id, (made, request.command), message, &names)),
            (true, Subject::Pattern) => self.at_every_server(id, (made, request, message), &names, input),
            (true, _) => self.at_servers_of_channels(id, (made, request, message), &names, input),
        };
        match change {
            Ok(change) if change.parts().is_empty() => self.confirm_here(id, channels, change),
            Ok(change) => self.begin_subscribing(id, change, input),
            Err((outcome, what, member)) => {
                let server = member.as_ref().map_or("", |member| &member.address);
                let text = match member {
                    Some(_) => what.to_owned(),
                    None => format!(
                        "{}: {what}",
                        protocol.command_name(request.command).to_uppercase()
                    ),
                };
                self.reject(id, request, &Failed::at(server, outcome, &text));
            }
        }
    }

    /// A change that takes subscriptions away: each server that may have them is asked.
    fn leaving(
        &self,
        id: ClientId,
        what: (SubscriptionChange, u16),
        message: &[u8],
        names: &[Span],
    ) -> Change {
        let subscriptions = self
            .clients
            .table
            .get(id)
            .and_then(|client| client.subscriptions.as_ref());
        let with = subscriptions
            .iter()
            .flat_map(|subscriptions| subscriptions.with(what.0.subject));
        let part = |(lane, count): (LaneId, u32)| {
            let member = Arc::clone(&self.servers.lane(lane)?.member);
            let due = if names.is_empty() {
                count as usize
            } else {
                names.len()
            };
            Some(Part::whole(member, due))
        };
        Change::of_all(what, message, names, with.filter_map(part).collect())
    }

    /// A subscription of patterns, which goes to every server where channels are, as far as it is up.
    fn at_every_server(
        &mut self,
        id: ClientId,
        (made, request, message): (SubscriptionChange, &Request, &[u8]),
        names: &[Span],
        input: &Input<'_>,
    ) -> Result<Change, Rejection> {
        let origin = self.clients.table.get(id).map(|client| client.origin(id));
        let root = origin.and_then(|origin| input.tree.root(usize::from(origin.listener)));
        let (Some(origin), Some(root)) = (origin, root) else {
            return Err((Outcome::LocalError, REMOVED, None));
        };
        let walk = Walk {
            tree: input.tree,
            origin,
            request,
            message,
            to: ReplyTo::Client { client: id, seq: 0 },
        };
        let mut members = Vec::new();
        self.concerned(root, &walk, About::Channels, &mut members);
        members.retain(|member| member.is_up());
        members.sort_by_key(|member| member.id);
        if members.is_empty() {
            return Err((Outcome::Ejected, ALL_DOWN, None));
        }
        let part = |member| Part::whole(member, names.len());
        Ok(Change::of_all(
            (made, request.command),
            message,
            names,
            members.into_iter().map(part).collect(),
        ))
    }

    /// A subscription of channels, each of which goes to its server.
    fn at_servers_of_channels(
        &mut self,
        id: ClientId,
        (made, request, message): (SubscriptionChange, &Request, &[u8]),
        names: &[Span],
        input: &Input<'_>,
    ) -> Result<Change, Rejection> {
        let origin = self.clients.table.get(id).map(|client| client.origin(id));
        let root = origin.and_then(|origin| input.tree.root(usize::from(origin.listener)));
        let (Some(origin), Some(root)) = (origin, root) else {
            return Err((Outcome::LocalError, REMOVED, None));
        };
        let walk = Walk {
            tree: input.tree,
            origin,
            request,
            message,
            to: ReplyTo::Client { client: id, seq: 0 },
        };
        let mut placed = Vec::with_capacity(names.len());
        for &name in names {
            match self.first_member(root, &walk, name.of(message)) {
                Some(member) if member.is_up() => placed.push((name, member)),
                Some(member) => return Err((Outcome::Ejected, member.refusal(), Some(member))),
                None => return Err((Outcome::LocalError, NOWHERE, None)),
            }
        }
        Ok(Change::divided(
            (made, request.command),
            message,
            &placed,
            &mut |names| {
                let mut part = Vec::new();
                origin.protocol.part(request, message, names, &mut part);
                part
            },
        ))
    }

    /// Confirms what no server has to be asked for: the client has no such subscription.
    fn confirm_here(&mut self, id: ClientId, channels: &dyn Channels, mut change: Change) {
        let Some(client) = self.clients.table.get(id) else {
            return;
        };
        let (form, made) = (client.session.form, change.made);
        let mut counts = client
            .subscriptions
            .as_ref()
            .map(|all| all.totals())
            .unwrap_or_default();
        let mut out = Vec::new();
        change.tell_confirmed(&mut counts, &mut |name, count| {
            channels.confirm(form, made, name, count, &mut out)
        });
        if out.is_empty() {
            channels.confirm(form, made, None, counts.told(made.subject), &mut out);
        }
        self.answer_here(id, &out, false);
    }

    /// Begins a change. The client is served no further before all servers have confirmed it.
    fn begin_subscribing(&mut self, id: ClientId, mut change: Change, input: &Input<'_>) {
        let Some(client) = self.clients.table.get_mut(id) else {
            return;
        };
        let size = u32::try_from(change.size()).unwrap_or(u32::MAX);
        let seq = client
            .slots
            .push(change.command, false, ReplyRole::Whole, size, self.now);
        client.awaits = Some(seq);
        change.seq = seq;
        let wait = change.parts().iter().map(|part| part.member.dedicated.wait).max();
        change.due = self.now + wait.map_or(Micros::ZERO, Micros::from);
        self.metrics.joins += u64::from(change.parts().len() > 1);
        let subscriptions = client
            .subscriptions
            .get_or_insert_with(|| Box::new(Subscriptions::new(Rc::clone(input.tree))));
        if change.made.adds {
            subscriptions.note_missing(input.tree.reach(usize::from(client.listener)));
        }
        subscriptions.change = Some(change);
        self.go_on_subscribing(id);
    }
}
