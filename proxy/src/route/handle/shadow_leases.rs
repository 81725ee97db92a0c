//! shadow_leases: a shadow that gives its own token for a miss gets what fills the miss with that token. Child 0
//! answers; child `n` gets the copies of shadow `n - 1`.

use std::sync::Arc;

use proxima_wire::{hash::spooky64, memcache::lease};

use super::sample::Sample;
use crate::route::{
    Answer,
    lease_table::{LeaseTable, LeaseToken},
    tree::{Begin, Give, Run, Script, ScriptRequest, Sent, Turn},
};

/// Serves the lease commands of a route with shadows.
#[derive(Debug)]
pub(in crate::route) struct ShadowLeases {
    /// What each shadow gets.
    pub(in crate::route) samples: Arc<[Sample]>,
    /// What tells each shadow's leases from others'.
    pub(in crate::route) shadows: Arc<[u64]>,
    pub(in crate::route) table: Arc<LeaseTable>,
}

/// The tag of the lease that one shadow has given for this key, while the client got `token`.
fn tag(shadow: u64, key: &[u8], token: u64) -> u64 {
    spooky64(key, shadow ^ token)
}

impl Script for ShadowLeases {
    fn name(&self) -> &'static str {
        "shadow_leases"
    }

    fn begin(&self, asked: &ScriptRequest<'_>) -> Begin {
        if asked.command == "lease-get" {
            let mut turn = Turn::own(0, 0);
            for (sample, child) in self.samples.iter().zip(1..) {
                if sample.takes(asked.key, asked.chance) {
                    turn = turn.and_own(child, child as u32);
                }
            }
            let run = Pairing {
                token: None,
                given: Vec::new(),
                shadows: Arc::clone(&self.shadows),
                table: Arc::clone(&self.table),
            };
            return Begin::Run(Box::new(run), turn);
        }
        let Some((token, place)) = lease::token(asked.message) else {
            return Begin::Pass(0);
        };
        let head = asked
            .message
            .get(..asked.request.head as usize)
            .unwrap_or_default();
        let mut sent = vec![Sent { child: 0, head: None }];
        for (&shadow, child) in self.shadows.iter().zip(1..) {
            let found = self
                .table
                .take(tag(shadow, asked.key, token), |lease| lease.whose == shadow);
            if let Some(lease) = found {
                let mut changed = Vec::new();
                lease::with_token(head, place, lease.token, &mut changed);
                let head = Some(changed);
                sent.push(Sent { child, head });
            }
        }
        Begin::Send(sent)
    }

    fn why(&self) -> String {
        "a shadow gets what fills a miss with its own token".into()
    }
}

/// The answers to one `lease-get`.
struct Pairing {
    /// The token that the client got.
    token: Option<u64>,
    /// The tokens that shadows gave.
    given: Vec<(usize, u64)>,
    shadows: Arc<[u64]>,
    table: Arc<LeaseTable>,
}

impl Run for Pairing {
    fn next(&mut self, asked: &ScriptRequest<'_>, number: u32, answer: &Answer<'_>) -> Turn {
        let token = lease::token(answer.bytes()).map(|(token, _)| token);
        match (number as usize, token) {
            (0, token) => self.token = token,
            (child, Some(token)) => self.given.push((child - 1, token)),
            _ => {}
        }
        if let Some(own) = self.token {
            for (shadow, token) in self.given.drain(..) {
                if let Some(&whose) = self.shadows.get(shadow) {
                    self.table
                        .put(tag(whose, asked.key, own), LeaseToken { token, whose });
                }
            }
        }
        match number {
            0 => Turn::give(Give::This),
            _ => Turn::default(),
        }
    }
}
