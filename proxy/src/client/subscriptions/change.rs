//! A change of a client's subscriptions, on its way through several servers.
//!
//! Each server confirms each name of its part, in order. The client gets one confirmation for each name, in
//! the order in which it has asked, as soon as all servers concerned and all names before it are confirmed.

use std::sync::Arc;

use proxima_wire::message::Span;

use super::Progress;
use crate::{
    members::{Member, MemberId},
    micros::Micros,
    protocol::{Confirmation, Subject, SubscriptionChange, SubscriptionCounts},
};

/// A change under way.
pub(in crate::client) struct Change {
    /// The kind of the change.
    pub made: SubscriptionChange,
    /// The number of the command.
    pub command: u16,
    /// The slot of the client's request.
    pub seq: u32,
    /// The client waits for connections until then.
    pub due: Micros,
    /// The request.
    pub message: Vec<u8>,
    /// The channels or patterns in the order of the request.
    names: Vec<Name>,
    /// The request names none, and means all that the client has.
    is_of_all: bool,
    /// The parts of the change, in the order of the servers' numbers.
    parts: Vec<Part>,
    /// The name that is confirmed next.
    next: usize,
    /// The number of parts that are not confirmed.
    open: usize,
    /// The number of parts for which there is a connection.
    connected: usize,
}

/// A channel or pattern.
struct Name {
    at: Span,
    /// The part that has the name; `None` if every part has it.
    part: Option<u32>,
    /// The number of servers that have not confirmed it.
    due: u32,
    /// The change of the client's number of subscriptions by its confirmation.
    delta: i8,
}

/// One server's part of a change.
pub(in crate::client) struct Part {
    /// The server.
    pub member: Arc<Member>,
    /// The server's request; `None` if it is the client's own.
    pub message: Option<Vec<u8>>,
    /// The number of confirmations that are to come.
    due: usize,
    /// The first name that it may confirm next.
    at: usize,
    has_begun: bool,
}

impl Part {
    /// Asks this server for what the client's request says. `due`: how many confirmations it will send.
    pub(in crate::client) fn whole(member: Arc<Member>, due: usize) -> Self {
        Self {
            member,
            message: None,
            due,
            at: 0,
            has_begun: false,
        }
    }
}

impl Change {
    /// A change that goes to all of these servers as it is. `names`: the channels or patterns.
    pub(in crate::client) fn of_all(
        (made, command): (SubscriptionChange, u16),
        message: &[u8],
        names: &[Span],
        parts: Vec<Part>,
    ) -> Self {
        let (part, due) = (None, parts.len() as u32);
        let name = |&at: &Span| Name {
            at,
            part,
            due,
            delta: 0,
        };
        Self {
            made,
            command,
            seq: 0,
            due: Micros::ZERO,
            message: message.to_vec(),
            names: names.iter().map(name).collect(),
            is_of_all: names.is_empty(),
            open: parts.len(),
            parts,
            next: 0,
            connected: 0,
        }
    }

    /// A change that is divided: each name goes to the server beside it. `divide` makes the request for these
    /// names.
    pub(in crate::client) fn divided(
        what: (SubscriptionChange, u16),
        message: &[u8],
        names: &[(Span, Arc<Member>)],
        divide: &mut dyn FnMut(&mut dyn Iterator<Item = Span>) -> Vec<u8>,
    ) -> Self {
        let mut members: Vec<&Arc<Member>> = names.iter().map(|(_, member)| member).collect();
        members.sort_by_key(|member| member.id);
        members.dedup_by_key(|member| member.id);
        let part_of = |member: &Member| members.binary_search_by_key(&member.id, |other| other.id).ok();
        let mut change = Self::of_all(what, message, &[], Vec::new());
        change.is_of_all = false;
        let mut names_of = vec![Vec::new(); members.len()];
        for (at, member) in names {
            let part = part_of(member);
            if let Some(names) = part.and_then(|part| names_of.get_mut(part)) {
                names.push(*at);
            }
            let (at, due, delta) = (*at, 1, 0);
            let part = part.map(|part| part as u32);
            change.names.push(Name { at, part, due, delta });
        }
        for (member, names) in members.iter().zip(names_of) {
            let due = names.len();
            change.parts.push(Part {
                message: (members.len() > 1).then(|| divide(&mut names.into_iter())),
                ..Part::whole(Arc::clone(member), due)
            });
        }
        change.open = change.parts.len();
        change
    }

    /// The parts of the change.
    pub(in crate::client) fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Bytes that are kept until all servers have confirmed.
    pub(in crate::client) fn collected(&self) -> usize {
        if self.is_of_all { self.message.len() } else { 0 }
    }

    /// The next server to which there is no connection.
    pub(super) fn lacking(&mut self, is_held: &dyn Fn(MemberId) -> bool) -> Option<Arc<Member>> {
        while let Some(part) = self.parts.get(self.connected) {
            if !is_held(part.member.id) {
                return Some(Arc::clone(&part.member));
            }
            self.connected += 1;
        }
        None
    }

    /// Bytes that all servers are sent.
    pub(in crate::client) fn size(&self) -> usize {
        let size = |part: &Part| part.message.as_ref().unwrap_or(&self.message).len();
        self.parts.iter().map(size).sum()
    }

    /// Bytes of memory that it takes. The parts of a divided message are together about as long as it is.
    pub(super) fn memory_bytes(&self) -> usize {
        let names = self.names.capacity() * size_of::<Name>();
        2 * self.message.capacity() + names + self.parts.capacity() * size_of::<Part>()
    }

    /// Has this server confirmed a name of this change?
    pub(super) fn has_begun(&self, member: MemberId) -> bool {
        let part = self.parts.binary_search_by_key(&member, |part| part.member.id);
        part.is_ok_and(|at| self.parts[at].has_begun)
    }

    /// Has this server still to confirm names of this change?
    pub(super) fn is_confirming(&self, member: MemberId) -> bool {
        let part = self.parts.binary_search_by_key(&member, |part| part.member.id);
        part.is_ok_and(|at| self.parts[at].due > 0)
    }

    /// Takes a confirmation in `message`, which changes the server's number by `delta`.
    pub(super) fn confirmed(
        &mut self,
        member: MemberId,
        (confirmation, message, delta): (&Confirmation, &[u8], i8),
        totals: &mut SubscriptionCounts,
        tell: &mut dyn FnMut(Option<&[u8]>, u32),
    ) -> Option<Progress> {
        let number = self
            .parts
            .binary_search_by_key(&member, |part| part.member.id)
            .ok()?;
        let part = self.parts.get_mut(number)?;
        if confirmation.made != self.made {
            return None;
        }
        part.due = part.due.checked_sub(1)?;
        part.has_begun = true;
        // All servers have the same patterns: the word of one of them counts.
        let is_pattern = self.made.subject == Subject::Pattern;
        let counts = !is_pattern || number == 0;
        if self.is_of_all && counts {
            let name = confirmation.name.of(message);
            let at = Span::new(self.message.len(), self.message.len() + name.len());
            self.message.extend_from_slice(name);
            // Other servers may still send messages for a pattern.
            let due = u32::from(is_pattern);
            let part = None;
            self.names.push(Name { at, part, due, delta });
        } else if !self.is_of_all {
            let is_its = |name: &Name| name.part.is_none_or(|part| part as usize == number);
            let at = part.at + self.names.get(part.at..)?.iter().position(is_its)?;
            part.at = at + 1;
            let name = self.names.get_mut(at)?;
            name.due = name.due.checked_sub(1)?;
            if counts {
                name.delta = name.delta.saturating_add(delta);
            }
        }
        if part.due == 0 {
            self.open -= 1;
        }
        let progress = match (part.due, self.open) {
            (0, 0) => Progress::Made,
            (0, _) => Progress::Part,
            _ => Progress::More,
        };
        if progress == Progress::Made {
            self.names.iter_mut().for_each(|name| name.due = 0);
        }
        self.tell_confirmed(totals, tell);
        Some(progress)
    }

    /// Tells the names that are confirmed, up to the first that is not.
    pub(in crate::client) fn tell_confirmed(
        &mut self,
        totals: &mut SubscriptionCounts,
        tell: &mut dyn FnMut(Option<&[u8]>, u32),
    ) {
        let subject = self.made.subject;
        while let Some(name) = self.names.get(self.next).filter(|name| name.due == 0) {
            totals.add(subject, name.delta);
            tell(Some(name.at.of(&self.message)), totals.told(subject));
            self.next += 1;
        }
        if self.is_of_all && self.next == self.names.len() {
            self.message.clear();
            self.names.clear();
            self.next = 0;
        }
    }
}
