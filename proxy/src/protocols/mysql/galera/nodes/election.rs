//! The choice of the server that takes writes: it stays that, moves by an order, or follows one that has
//! failed.

use std::{
    cmp::Ordering,
    time::{Duration, Instant},
};

use super::{
    super::planned_move::{LONGEST_HOLD, Next, PlannedMove},
    All, Node,
};
use crate::{
    event_log::kind,
    protocol::{OneWriter, WriterHold, WriterWish},
};

/// The time between two tries to move back to a server, at first and at last.
const FIRST_REST: Duration = Duration::from_secs(10);
const LONGEST_REST: Duration = Duration::from_secs(600);
/// The number of the order that the settings give by the names of servers. No operator's has it.
const BY_NAME: u64 = 0;
/// Time for what is under way at the writer before writes move back to such a server. Writes wait meanwhile,
/// and nobody has asked for that.
const WITHIN: Duration = Duration::from_millis(500);

impl All {
    /// The number of the server that takes writes: the one that does, as long as it can, and otherwise the
    /// first. One that follows another waits for the others first, so that it has what that one has
    /// acknowledged.
    pub(super) fn elect(&mut self, settings: &OneWriter, now: Instant) -> u32 {
        if self
            .nodes
            .values()
            .any(|node| node.number == self.writer && node.is_free_to_write())
        {
            self.next = None;
            return self.follow(settings, now);
        }
        if let Some(writer) = self.leave(settings, now) {
            self.next = None;
            return writer;
        }
        // It has failed: the one that was to follow it is the first.
        self.moving = None;
        // Writes that a server may still acknowledge must be there before the next one waits for the others.
        if !self.closing.is_empty() {
            self.next = None;
            return 0;
        }
        let Some((number, proofs)) = self.first(settings).map(|node| (node.number, node.proofs)) else {
            self.next = None;
            return 0;
        };
        let (next, before) = *self.next.get_or_insert((number, proofs));
        let is_same = next == number && proofs >= before;
        if !is_same {
            self.next = Some((number, proofs));
        }
        // The first wait may have begun before the one was lost that it follows.
        match !self.had_writer || is_same && proofs >= before + 2 {
            true => number,
            false => 0,
        }
    }

    /// The first of those that can take writes: the one that is ordered to be the writer, and then by name.
    fn first(&self, settings: &OneWriter) -> Option<&Node> {
        let wished = self.wished();
        let rank = |node: &Node| settings.order.iter().position(|name| *name == node.status.name);
        let able = self.nodes.values().filter(|node| node.is_free_to_write());
        able.min_by(|one, other| {
            let ranks = [one, other].map(|node| {
                let is_other = wished.is_some_and(|wished| wished != node.number || !node.is_up);
                (is_other, rank(node).unwrap_or(usize::MAX))
            });
            let by_rank = ranks[0].cmp(&ranks[1]);
            by_rank.then_with(|| natural(&one.status.name, &other.status.name))
        })
    }

    /// The number of the server that is ordered to be the writer.
    pub(super) fn wished(&self) -> Option<u32> {
        let wish = self.wish.as_ref()?;
        self.nodes.get(&wish.address).map(|node| node.number)
    }

    /// The number and the address of the server that the settings name first, of those that can take writes.
    pub(super) fn preferred(&self, settings: &OneWriter) -> Option<(u32, &str)> {
        let rank = |node: &Node| settings.order.iter().position(|name| *name == node.status.name);
        let is_able = |node: &Node| node.is_free_to_write() && node.is_up || node.number == self.writer;
        let named = self.nodes.iter().filter(|(_, node)| is_able(node));
        let ranked = named.filter_map(|(address, node)| Some((rank(node)?, node.number, address)));
        let (_, number, address) = ranked.min()?;
        Some((number, address))
    }

    /// The order that the settings give: writes move to the first of the servers that are named there, if
    /// that can take them and comes before the writer.
    fn preference(&self, settings: &OneWriter) -> Option<WriterWish> {
        let (number, address) = self.preferred(settings)?;
        (number != self.writer).then(|| WriterWish {
            number: BY_NAME,
            address: address.to_owned(),
            within: WITHIN,
            is_forced: false,
        })
    }

    /// Is it known from before which server this order makes the writer? What the settings say was so at the
    /// start.
    fn was_followed(&self, wish: &WriterWish) -> bool {
        wish.number == BY_NAME || self.followed == Some(wish.number)
    }

    /// The writer serves, and its writes wait for the word of those who hold them. They may say where the writes go.
    fn wait_for_word(&mut self, hold: &WriterHold, settings: &OneWriter, now: Instant) -> u32 {
        let to = hold.to.as_ref().and_then(|address| self.nodes.get(address));
        let to = to.map(|node| node.number);
        let mut moving = match self.moving.take() {
            Some(moving) if moving.is_for(hold.number) => moving,
            earlier => {
                self.moves += 1;
                self.has_begun = true;
                let limits = (LONGEST_HOLD, settings.wait);
                PlannedMove::held(self.moves, hold.number, limits, now, earlier.as_ref())
            }
        };
        moving.aim(to, now);
        self.moving = Some(moving);
        self.writer
    }

    /// The writer serves: moves to the one that is ordered to be it, if that can.
    fn follow(&mut self, settings: &OneWriter, now: Instant) -> u32 {
        if let Some(hold) = self.hold.clone() {
            return self.wait_for_word(&hold, settings, now);
        }
        let Some(wish) = self.wish.clone().or_else(|| self.preference(settings)) else {
            if self.moving.take().is_some() {
                tracing::info!(target: kind::ROLE, "the writer stays: no other one is to be it any more");
            }
            return self.writer;
        };
        let wished = self.nodes.get(&wish.address).map(|node| node.number);
        if wished == Some(self.writer) {
            self.followed = Some(wish.number);
            match self.moving.take() {
                Some(moving) if moving.is_held() => {
                    tracing::info!(target: kind::ROLE, "writes go on at the same server")
                }
                Some(_) => tracing::info!(target: kind::ROLE, "the writer stays: it is well again"),
                None => {}
            }
            return self.writer;
        }
        let was_followed = self.was_followed(&wish);
        let Some((to, proved)) = self.able(wished, was_followed, settings, now) else {
            let is_read_only = |node: &Node| Some(node.number) == wished && node.status.is_read_only;
            let is_unfit = !was_followed && self.nodes.values().any(is_read_only);
            if self.moving.take().is_some() || is_unfit {
                let why = match is_unfit {
                    true => "the server that was to be it is read-only",
                    false => "the server that was to be it does not serve",
                };
                self.give_up(&wish, why, now);
            }
            return self.writer;
        };
        match self.go_on((wish.within, wish.is_forced), (to, proved), settings, now) {
            Next::Wait | Next::Close => self.writer,
            Next::Done => {
                self.followed = Some(wish.number);
                self.rest = Duration::ZERO;
                to
            }
            Next::GiveUp(why) => {
                self.give_up(&wish, why, now);
                self.writer
            }
        }
    }

    /// The writer says that it is about to do something else, and still does or rejects what is under way
    /// there: writes move to the first of the others, as by an order. A donor that nobody can follow stays
    /// the writer. Returns the number of the writer; `None`: it has failed.
    fn leave(&mut self, settings: &OneWriter, now: Instant) -> Option<u32> {
        let mut nodes = self.nodes.values();
        let leaving = nodes.find(|node| node.number == self.writer)?;
        let within = leaving.leaves_within()?;
        let to = self.moving.as_ref().and_then(PlannedMove::to);
        let chosen = self
            .nodes
            .values()
            .find(|node| Some(node.number) == to && node.is_free_to_write());
        let Some(to) = chosen.or_else(|| self.first(settings)) else {
            let stays = leaving.is_donor_at_most() && !leaving.drains;
            self.moving = None;
            return stays.then_some(self.writer);
        };
        let (number, proved) = (to.number, to.proved);
        match self.go_on((within, true), (number, proved), settings, now) {
            Next::Wait | Next::Close => Some(self.writer),
            Next::Done => Some(number),
            Next::GiveUp(why) => {
                tracing::warn!(target: kind::ROLE, why, "the writer has not left in time");
                None
            }
        }
    }

    /// Goes on with the move to this server, of which the time is known at which it was asked for the last
    /// barrier that it has answered, or begins it. Returns what the move has come to.
    fn go_on(
        &mut self,
        (within, is_forced): (Duration, bool),
        (to, proved): (u32, Option<Instant>),
        settings: &OneWriter,
        now: Instant,
    ) -> Next {
        let mut moving = self.moving.take();
        if !moving
            .as_mut()
            .is_some_and(|moving| moving.takes_over(to, (within, is_forced), now))
        {
            self.moves += 1;
            self.has_begun = true;
            let (manner, earlier) = ((within, is_forced), moving.as_ref());
            moving = Some(PlannedMove::new(
                self.moves,
                to,
                manner,
                settings.wait,
                now,
                earlier,
            ));
        }
        self.moving = moving;
        let moving = self.moving.as_mut();
        let next = moving.map_or(Next::Wait, |moving| moving.next(proved, now));
        match next {
            Next::Wait => {}
            Next::Close => self.close(self.address_of(self.writer)),
            Next::Done => {
                self.moving = None;
                self.was_emptied = true;
            }
            Next::GiveUp(_) => self.moving = None,
        }
        next
    }

    /// The number of the wished server, and the time at which it was asked for the last barrier that it has
    /// answered, if writes may move there now. To one that was the writer by the same order they go back when
    /// it has been well for some time.
    fn able(
        &self,
        wished: Option<u32>,
        was_followed: bool,
        settings: &OneWriter,
        now: Instant,
    ) -> Option<(u32, Option<Instant>)> {
        let node = self.nodes.values().find(|node| Some(node.number) == wished)?;
        let is_well = settings
            .failback
            .zip(node.able_since)
            .is_some_and(|(failback, since)| now - since >= failback);
        let is_early = self.rests.is_some_and(|until| now < until) || !is_well;
        let can = node.is_free_to_write() && node.is_up;
        let moves = self
            .moving
            .as_ref()
            .is_some_and(|moving| moving.to() == Some(node.number));
        let may = moves || !was_followed || !is_early;
        (can && may).then_some((node.number, node.proved))
    }

    /// The writer stays, for this reason. An order that was followed before stands, and is tried again later.
    fn give_up(&mut self, wish: &WriterWish, why: &'static str, now: Instant) {
        tracing::warn!(target: kind::ROLE, why, "the writer stays");
        if self.was_followed(wish) {
            // Writes wait for each try: there are fewer and fewer.
            self.rest = (2 * self.rest).clamp(FIRST_REST, LONGEST_REST);
            self.rests = Some(now + self.rest);
            return;
        }
        self.wish = None;
        self.refused = Some(wish.number);
        self.given_up = Some((wish.number, why));
    }
}

/// Names in natural order: `pxc-2` is before `pxc-10`.
pub(super) fn natural(one: &str, other: &str) -> Ordering {
    let split = |name: &str| {
        let stem = name.trim_end_matches(|last: char| last.is_ascii_digit()).len();
        (name[..stem].to_owned(), name[stem..].parse::<u64>().unwrap_or(0))
    };
    split(one).cmp(&split(other)).then_with(|| one.cmp(other))
}
