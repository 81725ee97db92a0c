//! Carries out what the copies' agreement decides.
//!
//! * `visits`: looks at copies that are out, and pays what they owe
//! * `changes`: copies come and go with the lists of servers
//! * `absent`: who is named no more, and may return
//! * `notes`: the state file

pub(super) mod absent;
mod changes;
mod notes;
mod visits;

use std::{
    collections::{HashMap, HashSet},
    io, mem,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use self::notes::{Left, Note, Notes};
use super::{Proxy, State};
use crate::{
    config::schema::{Config, Rejoin},
    engine::News,
    members::{
        Member, MemberId,
        copies::{Act, Agreement, Owed, Standing, Views},
    },
    worker::Order,
};

/// So many addresses are remembered; with more, whoever comes may be one of them.
const STRAYS: usize = 10_000;
/// Until what could not be noted is tried again.
const NOTE_AGAIN: Duration = Duration::from_secs(1);

/// What the control thread remembers of copies.
pub(super) struct Copies {
    pub(super) agreement: Agreement,
    /// Where it is noted who owes.
    notes: Option<Notes>,
    /// Steps of copies that wait until they are noted.
    unnoted: Vec<(MemberId, u64)>,
    /// It will be tried again.
    notes_again: bool,
    /// Pools that have had members: who comes later is new.
    begun: HashSet<Arc<str>>,
    /// By endpoint of copies that were removed: our ends of connections that broke with requests unanswered; none: not known.
    strays: HashMap<String, Vec<Option<SocketAddr>>>,
    pub(super) figures: HashMap<MemberId, CopyFigures>,
    /// Times that the state file could not be written.
    pub(super) note_failures: u64,
}

/// What happened to a copy, for `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyFigures {
    /// Times that it was found to owe.
    pub debts: u64,
    /// Debts that were paid by deleting keys, and by a flush.
    pub repairs: u64,
    pub flushes: u64,
    /// Visits that could not pay.
    pub setbacks: u64,
}

impl Copies {
    pub(super) fn new(participants: usize, config: &Config) -> io::Result<Self> {
        Ok(Self {
            agreement: Agreement::new(participants),
            notes: config.state.as_deref().map(Notes::open).transpose()?,
            unnoted: Vec::new(),
            notes_again: false,
            begun: HashSet::new(),
            strays: HashMap::new(),
            figures: HashMap::new(),
            note_failures: 0,
        })
    }

    /// This member is gone, and its server may still execute what came by a connection of ours with this end.
    fn stray(&mut self, member: &Member, end: Option<SocketAddr>) {
        if self.strays.len() < STRAYS {
            self.strays.entry(member.endpoint()).or_default().push(end);
        }
    }

    /// The standings, for `explain`.
    pub(super) fn views(&self, members: &[Arc<Member>]) -> Views {
        let mut views = Views::default();
        for member in members.iter().filter(|member| member.is_copy) {
            views.show(member.id, self.agreement.standing(member.id));
        }
        views
    }
}

/// The copies of a configuration.
fn copies_of(members: &[Arc<Member>]) -> impl Iterator<Item = &Arc<Member>> {
    members.iter().filter(|member| member.is_copy)
}

impl Proxy {
    /// Something about a copy was heard from a worker.
    pub(super) fn hear(self: &Arc<Self>, news: News) {
        let now = Instant::now();
        let state = &mut *self.state();
        let acts = match news {
            News::Missed(member, why) => {
                if !state.members.iter().any(|known| known.id == member.id) {
                    return;
                }
                state
                    .copies
                    .agreement
                    .missed(member.id, &member.pool, &why, Owed::default(), now)
            }
            News::Broken(member, address) => {
                if state.members.iter().any(|known| known.id == member.id) {
                    state.copies.agreement.broken(member.id, address);
                } else {
                    state.copies.stray(&member, address);
                }
                return;
            }
            News::Follows {
                worker,
                member,
                epoch,
                owed,
            } => state
                .copies
                .agreement
                .acknowledged(worker, member, epoch, owed, now),
            News::Ejected(..) | News::Short(_) => return,
        };
        self.perform(state, acts);
    }

    /// In order, and under the lock: workers hear proposals in the order in which they were made.
    pub(super) fn perform(self: &Arc<Self>, state: &mut State, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Propose {
                    member,
                    epoch,
                    standing,
                } => {
                    let figures = state.copies.figures.entry(member).or_default();
                    figures.debts += u64::from(standing == Standing::Leaving);
                    if let Some(known) = state.members.iter().find(|known| known.id == member) {
                        let why = state.copies.agreement.reason(member);
                        let (pool, member) = (&known.pool, &known.name);
                        match standing {
                            Standing::Leaving => tracing::warn!(%pool, %member, %standing, why, "copy"),
                            _ => tracing::info!(%pool, %member, %standing, why, "copy"),
                        }
                    }
                    self.workers.order(|_| Order::Stand {
                        member,
                        epoch,
                        standing,
                    });
                }
                Act::Note { member, epoch } => {
                    state.copies.unnoted.push((member, epoch));
                    self.note(state);
                }
                Act::Watch {
                    member,
                    epoch,
                    setbacks,
                } => {
                    self.runtime
                        .spawn(Arc::clone(self).watch(member, epoch, setbacks));
                }
                Act::Pay {
                    member,
                    epoch,
                    debt,
                    known,
                } => {
                    if let Some(found) = state.members.iter().find(|known| known.id == member) {
                        let rejoin = rejoin_of(&state.loaded.config, &found.pool);
                        let paid = Arc::clone(self).pay(Arc::clone(found), epoch, debt, known, rejoin);
                        self.runtime.spawn(paid);
                    }
                }
            }
        }
    }

    /// Writes down who owes, so that it outlives this process; what waited for that goes on.
    fn note(self: &Arc<Self>, state: &mut State) {
        let rows = rows(state);
        let copies = &mut state.copies;
        let left = copies
            .notes
            .as_mut()
            .map_or(Left::Newest, |notes| notes.keep(rows));
        if left != Left::Newest {
            copies.note_failures += 1;
            if !mem::replace(&mut copies.notes_again, true) {
                self.runtime.spawn(Arc::clone(self).note_again());
            }
        }
        if left == Left::Older {
            return;
        }
        for (member, epoch) in mem::take(&mut copies.unnoted) {
            let acts = state.copies.agreement.noted(member, epoch);
            self.perform(state, acts);
        }
    }

    async fn note_again(self: Arc<Self>) {
        sleep(NOTE_AGAIN).await;
        let state = &mut *self.state();
        state.copies.notes_again = false;
        self.note(state);
    }
}

/// What is to be noted of each copy.
fn rows(state: &State) -> Vec<Note> {
    let copies = &state.copies;
    let Some(notes) = &copies.notes else {
        return Vec::new();
    };
    let named = copies_of(&state.members).map(|member| {
        let owes = copies.agreement.snapshot(member.id).map(|copy| copy.why);
        Note::new(member, copies.agreement.life(member.id), owes)
    });
    let configured = &state.loaded.config.pools;
    let unnamed = notes.of_pools(|pool| copies.begun.contains(pool) || !configured.contains_key(pool));
    named.chain(unnamed.cloned()).collect()
}

fn rejoin_of(config: &Config, pool: &str) -> Rejoin {
    config
        .pools
        .get(pool)
        .and_then(|pool| pool.replicated)
        .map_or(Rejoin::Repair, |replicated| replicated.rejoin)
}
