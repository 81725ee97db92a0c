//! Carries out what the copies' agreement decides: tells the workers, writes down who owes, visits servers.

use std::{
    collections::{HashMap, HashSet},
    io,
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::time::sleep;

use super::{
    Proxy, State,
    notes::{Note, Notes},
};
use crate::{
    config::schema::{Config, Rejoin, Source},
    engine::News,
    members::{
        Member, MemberId,
        copies::{
            Act, Agreement, Owed, Standing, Views,
            visit::{self, Payment},
        },
        probe,
    },
    route::Random,
    worker::Order,
};

/// The first pause between two looks at a copy that is out; doubled up to the pool's longest.
const FIRST_LOOK: Duration = Duration::from_millis(50);
/// The longest pause between two looks: what comes back is read again soon after.
const LONGEST_LOOK: Duration = Duration::from_secs(1);
/// A copy that failed again and again waits this long times two to the number of failures, up to the longest pause.
const SETBACK: Duration = Duration::from_millis(250);
const LONGEST_SETBACK: Duration = Duration::from_secs(30);

/// So many addresses are remembered; with more, whoever comes may be one of them.
const STRAYS: usize = 10_000;

/// What the control thread remembers of copies.
pub(super) struct Copies {
    pub(super) agreement: Agreement,
    /// In which life a server was last met.
    met: HashMap<MemberId, visit::Incarnation>,
    /// Where it is noted who owes.
    notes: Option<Notes>,
    /// Pools that have had members: who comes later is new.
    begun: HashSet<Arc<str>>,
    /// By endpoint of copies that were removed: our ends of connections that broke with requests unanswered; none: not known.
    strays: HashMap<String, Vec<Option<SocketAddr>>>,
    pub(super) figures: CopyFigures,
}

/// What happened to copies, for `/metrics`.
#[derive(Clone, Copy, Debug, Default)]
pub struct CopyFigures {
    /// Times that a copy was found to owe.
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
            met: HashMap::new(),
            notes: config.state.as_deref().map(Notes::open).transpose()?,
            begun: HashSet::new(),
            strays: HashMap::new(),
            figures: CopyFigures::default(),
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
                tracing::warn!(pool = %member.pool, member = %member.name, %why, "missed a write: not read until repaired");
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
            News::Lost(pool) => {
                tracing::error!(%pool, "too few copies took a write: this proxy may be the one that is cut off; none is read before it was repaired");
                let why = "too few copies were in reach";
                let members = state.members.clone();
                copies_of(&members)
                    .filter(|member| member.pool == pool)
                    .flat_map(|member| {
                        let owed = Owed::everything();
                        state
                            .copies
                            .agreement
                            .missed(member.id, &member.pool, why, owed, now)
                    })
                    .collect()
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
            News::Ejected(..) => return,
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
                    state.copies.figures.debts += u64::from(standing == Standing::Leaving);
                    if let Some(known) = state.members.iter().find(|known| known.id == member) {
                        let why = state.copies.agreement.snapshot(member).map(|copy| copy.why);
                        let why = why.filter(|_| standing == Standing::Leaving);
                        tracing::info!(pool = %known.pool, member = %known.name, %standing, why, "copy");
                    }
                    self.workers.order(|_| Order::Stand {
                        member,
                        epoch,
                        standing,
                    });
                }
                Act::Note => self.note(state),
                Act::Watch {
                    member,
                    epoch,
                    setbacks,
                } => {
                    self.runtime
                        .spawn(Arc::clone(self).watch(member, epoch, setbacks));
                }
                Act::Pay { member, epoch, debt } => {
                    let (proxy, known) = (Arc::clone(self), state.copies.met.get(&member).copied());
                    let Some(found) = state.members.iter().find(|known| known.id == member).cloned() else {
                        continue;
                    };
                    let rejoin = rejoin_of(&state.loaded.config, &found.pool);
                    self.runtime.spawn(async move {
                        let known = match known {
                            Some(known) => Ok(known),
                            // Once met, a restart can be told.
                            None => visit::meet(&found).await.inspect(|who| {
                                proxy.state().copies.met.insert(member, *who);
                            }),
                        };
                        let result = match known {
                            Ok(known) => visit::pay(&found, &debt, rejoin, known).await,
                            Err(why) => Err(why),
                        };
                        let state = &mut *proxy.state();
                        match &result {
                            Ok((who, payment)) => {
                                state.copies.met.insert(member, *who);
                                let figures = &mut state.copies.figures;
                                let how = match payment {
                                    Payment::None => "nothing had to be done".to_owned(),
                                    Payment::Keys(keys) => {
                                        figures.repairs += 1;
                                        format!("{keys} keys deleted")
                                    }
                                    Payment::Flush => {
                                        figures.flushes += 1;
                                        "flushed".to_owned()
                                    }
                                };
                                tracing::info!(pool = %found.pool, member = %found.name, %how, "its debt is paid");
                            }
                            Err(why) => {
                                state.copies.figures.setbacks += 1;
                                tracing::warn!(pool = %found.pool, member = %found.name, %why, "cannot be read yet");
                            }
                        }
                        let result = result.map(|_| ());
                        let acts = state
                            .copies
                            .agreement
                            .paid(member, epoch, result, Instant::now());
                        proxy.perform(state, acts);
                    });
                }
            }
        }
    }

    /// Looks at a copy that is out, until it answers and may rejoin.
    async fn watch(self: Arc<Self>, id: MemberId, epoch: u64, setbacks: u32) {
        let Some(member) = self.members().into_iter().find(|member| member.id == id) else {
            return;
        };
        let mut random = Random(epoch ^ u64::from(std::process::id()) << 32);
        if setbacks > 0 {
            sleep((SETBACK * 2u32.saturating_pow(setbacks.min(16))).min(LONGEST_SETBACK)).await;
        }
        let mut pause = FIRST_LOOK;
        loop {
            let answers = probe::probe(&member).await.is_ok();
            {
                let state = &mut *self.state();
                if !state.copies.agreement.is_watched(id, epoch) {
                    return;
                }
                if answers {
                    member.health.revived();
                    self.recount(&state.members, &state.loaded.config);
                }
                let acts = state.copies.agreement.reachable(id, epoch, answers);
                if !acts.is_empty() {
                    return self.perform(state, acts);
                }
            }
            sleep(pause.mul_f64(0.75 + random.fraction() / 2.0)).await;
            pause = (pause * 2).min(LONGEST_LOOK);
        }
    }

    /// Before a change of members takes effect: who goes is read no more.
    pub(super) fn dismiss_copies(&self, state: &State, next: &[Arc<Member>]) {
        let gone: Vec<MemberId> = copies_of(&state.members)
            .filter(|member| !next.iter().any(|other| other.id == member.id))
            .map(|member| member.id)
            .collect();
        if gone.is_empty() {
            return;
        }
        // As for one that missed a write: nobody goes on without it before nobody reads it.
        for standing in [Standing::Leaving, Standing::Out] {
            let (done, all) = std::sync::mpsc::channel();
            self.workers.order(|_| Order::Dismiss {
                members: gone.clone(),
                standing,
                done: done.clone(),
            });
            drop(done);
            let _ = all.iter().count();
        }
    }

    /// Who comes is read only when every worker writes to it and nothing older is left there. `before` are the members
    /// until now; the workers have not yet the tree that names the new ones.
    pub(super) fn welcome_copies(self: &Arc<Self>, state: &mut State, before: &[Arc<Member>]) {
        let now = Instant::now();
        let members = state.members.clone();
        for member in copies_of(before) {
            if !members.iter().any(|other| other.id == member.id) {
                let copies = &mut state.copies;
                let debt = copies.agreement.removed(member.id);
                debt.ends().for_each(|end| copies.stray(member, end));
                copies.met.remove(&member.id);
            }
        }
        let config = &state.loaded.config;
        for (name, pool) in &config.pools {
            if let Some(replicated) = &pool.replicated {
                let size = copies_of(&members)
                    .filter(|member| *member.pool == **name)
                    .count();
                let had = copies_of(before).filter(|member| *member.pool == **name).count();
                let told = matches!(pool.source, Source::Static(_)); // when it was read
                if size == 2 && had != 2 && replicated.min_acks.is_none() && !told {
                    tracing::warn!(pool = %name, "has two copies, and a majority of two is two: while one is down, writes are refused; with min_acks 1 they go on");
                }
                state
                    .copies
                    .agreement
                    .group(name, size, replicated.acks_of(size).min(size));
            }
        }
        let begun = state.copies.begun.clone();
        let mut acts = Vec::new();
        let mut unknown = Vec::new();
        for member in copies_of(&members) {
            if before.iter().any(|other| other.id == member.id) {
                continue;
            }
            let copies = &mut state.copies;
            let first = !begun.contains(&member.pool);
            if member.socket.is_some() {
                // Without an address nobody has been written to: who comes with the first answers was there before.
                copies.begun.insert(Arc::clone(&member.pool));
            }
            let note = copies.notes.as_ref().map(|notes| notes.of(member));
            if let Some(met) = note.flatten().and_then(Note::met) {
                copies.met.insert(member.id, met);
            }
            let why = match note {
                _ if member.socket.is_none() => "its name does not resolve",
                _ if !first => "it is new: what it holds is not known",
                Some(Some(note)) if note.owes.is_some() => "it missed writes before this process began",
                Some(None) => "the state file does not know it",
                None | Some(Some(_)) => {
                    unknown.push(Arc::clone(member));
                    continue;
                }
            };
            let owed = Owed::everything();
            acts.extend(copies.agreement.missed(member.id, &member.pool, why, owed, now));
            // Connections whose addresses nobody knows may still bring it something: of the process before this one, or
            // of a member that it was before.
            let unknown = member.socket.is_some() && (first || copies.strays.len() == STRAYS);
            if unknown || before.iter().any(|other| other.endpoint() == member.endpoint()) {
                copies.agreement.broken(member.id, None);
            }
            for end in copies.strays.remove(&member.endpoint()).unwrap_or_default() {
                copies.agreement.broken(member.id, end);
            }
        }
        self.perform(state, acts);
        self.note(state);
        for member in unknown {
            self.runtime.spawn(Arc::clone(self).meet(member));
        }
    }

    /// At the start a copy that answers is taken as good; one that is silent may have been left out of writes.
    async fn meet(self: Arc<Self>, member: Arc<Member>) {
        let met = visit::meet(&member).await;
        let state = &mut *self.state();
        match met {
            Ok(who) => {
                state.copies.met.insert(member.id, who);
            }
            Err(why) => {
                let why = format!("it did not answer at the start: {why}");
                tracing::warn!(pool = %member.pool, member = %member.name, %why, "not read until repaired");
                let acts = state.copies.agreement.missed(
                    member.id,
                    &member.pool,
                    &why,
                    Owed::everything(),
                    Instant::now(),
                );
                // The process before this one may have had a request on its way there.
                state.copies.agreement.broken(member.id, None);
                self.perform(state, acts);
            }
        }
        self.note(state);
    }

    /// Writes down who owes, so that it outlives this process.
    fn note(&self, state: &State) {
        let copies = &state.copies;
        let Some(notes) = &copies.notes else { return };
        let mut rows: Vec<Note> = copies_of(&state.members)
            .map(|member| {
                let owes = copies.agreement.snapshot(member.id).map(|copy| copy.why);
                Note::new(member, copies.met.get(&member.id).copied(), owes)
            })
            .collect();
        let configured = &state.loaded.config.pools;
        let unnamed = notes.of_pools(|pool| copies.begun.contains(pool) || !configured.contains_key(pool));
        rows.extend(unnamed.cloned());
        if let Err(error) = notes.write(rows) {
            let path = notes.path().display();
            tracing::error!(%path, %error, "cannot note which copies owe writes: a restart would forget it");
        }
    }
}

fn rejoin_of(config: &Config, pool: &str) -> Rejoin {
    config
        .pools
        .get(pool)
        .and_then(|pool| pool.replicated)
        .map_or(Rejoin::Repair, |replicated| replicated.rejoin)
}
