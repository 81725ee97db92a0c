//! What one worker knows of the copies' standings.

use proxima_wire::message::Class;

use super::{Owed, Standing};
use crate::members::MemberId;

/// The standings as one worker has been told them, and what it has seen since.
#[derive(Debug, Default)]
pub struct Views {
    /// By member number; who is not there is current.
    views: Vec<View>,
}

#[derive(Debug, Default)]
struct View {
    standing: Standing,
    /// It fell by what this worker saw itself: whatever was proposed before that was heard is not followed.
    fell: bool,
    /// How often it was seen to be out.
    outs: u32,
    owed: Owed,
}

impl View {
    fn stand(&mut self, standing: Standing) {
        self.standing = standing;
        self.outs = self.outs.wrapping_add(u32::from(standing == Standing::Out));
    }
}

impl Views {
    #[inline]
    pub fn standing(&self, member: MemberId) -> Standing {
        self.views
            .get(member.0 as usize)
            .map_or(Standing::Current, |view| view.standing)
    }

    /// May it be asked a request of this class?
    #[inline]
    pub fn admits(&self, member: MemberId, class: Class) -> bool {
        let standing = self.standing(member);
        match class {
            Class::Read => standing.is_read(),
            _ => standing.is_written(),
        }
    }

    fn view(&mut self, member: MemberId) -> &mut View {
        let number = member.0 as usize;
        if self.views.len() <= number {
            self.views.resize_with(number + 1, View::default);
        }
        &mut self.views[number]
    }

    /// Follows a proposal; returns what the copy was seen to owe, to be acknowledged with it. None: it has fallen since the
    /// proposal was made, and another one will come.
    pub fn follow(&mut self, member: MemberId, standing: Standing) -> Option<Owed> {
        let view = self.view(member);
        if view.fell && standing != Standing::Leaving {
            return None;
        }
        view.fell = false;
        view.stand(standing);
        Some(std::mem::take(&mut view.owed))
    }

    /// This worker saw the copy miss a write: it reads it no more, at once. True: the others are to be told.
    pub fn fall(&mut self, member: MemberId) -> bool {
        let view = self.view(member);
        let first = view.standing.is_written();
        if first {
            view.standing = Standing::Leaving;
            view.fell = true;
        }
        first
    }

    /// The copy misses a write of this key; of nobody knows what, where it is empty. Returns what [`Views::is_settled`] asks for.
    pub fn owe(&mut self, member: MemberId, key: &[u8]) -> u32 {
        let view = self.view(member);
        view.owed.add(key);
        // One that is out, or joining, nobody reads: what it owes is paid before anybody does.
        match view.standing.is_required() {
            true => view.outs,
            false => view.outs.wrapping_sub(1),
        }
    }

    /// Has it been out since it missed the write for which [`Views::owe`] returned `outs`? It may be back meanwhile: what
    /// it owed is paid then.
    pub fn is_settled(&self, member: MemberId, outs: u32) -> bool {
        self.views
            .get(member.0 as usize)
            .is_some_and(|view| view.outs != outs)
    }

    /// The copy misses a write of this key, if it is not written.
    pub fn owe_if_out(&mut self, member: MemberId, key: &[u8]) {
        if !self.standing(member).is_written() {
            self.owe(member, key);
        }
    }

    /// Sets what is shown to somebody who follows no proposals.
    pub fn show(&mut self, member: MemberId, standing: Standing) {
        self.view(member).stand(standing);
    }

    /// The member is gone: whatever it missed is settled, and nothing is left for the next one of this number.
    pub fn forget(&mut self, member: MemberId) {
        let view = self.view(member);
        *view = View {
            outs: view.outs.wrapping_add(1),
            ..View::default()
        };
    }
}
