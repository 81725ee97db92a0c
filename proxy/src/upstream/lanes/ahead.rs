//! Dedicated lanes that are opened before a client wants them: where several clients had to wait for a
//! connection and a login, the next ones need not.

use std::{mem::take, sync::Arc};

use super::{
    dedicated::{Dedicated, Idle},
    missed::Missed,
};
use crate::{engine::Engine, members::Member};

/// The clients that must have waited since the last look: one alone says nothing of the next.
const LEAST: u32 = 2;
/// The most lanes that are opened at a time.
const MOST: u32 = 8;

impl Dedicated {
    /// A lane with this login was opened for a client that waits for it. Where few requests need a dedicated
    /// lane, those that do keep it for long, and it says nothing of the next.
    pub(super) fn note_missed(&mut self, member: &Arc<Member>, login: u16) {
        if !member.protocol.fits_requests() {
            return;
        }
        let before = match self.missed.login == login {
            true => self.missed.count,
            false => 0,
        };
        self.missed = Missed {
            member: Some(Arc::clone(member)),
            login,
            count: before + 1,
        };
    }
}

impl Engine {
    /// Opens half as many lanes to this server as clients had to wait for since the last look, with the login
    /// that they had in common, if none is idle and nobody waits: a server has accepted it.
    pub(super) fn open_ahead(&mut self, member: &Arc<Member>) {
        let dedicated = self.dedicated_of(member);
        let Missed { login, count, .. } = take(&mut dedicated.missed);
        let is_useful = count >= LEAST && dedicated.idle.is_empty() && dedicated.queue.is_empty();
        if !is_useful || !self.servers.logins.is_proven(login) || !member.is_up() {
            return;
        }
        for _ in 0..(count / 2).min(MOST).min(member.dedicated.idle) {
            let Some(lane) = self.open_dedicated(member, login) else {
                return;
            };
            let former = None;
            self.dedicated_of(member).idle.insert(0, Idle { lane, former });
        }
    }
}
