//! Plays the control thread between two workers and their copies: orders are heard late, debts are paid when the server has
//! seen the end of the connections that broke.

use std::{
    collections::VecDeque,
    time::{Duration, Instant},
};

use proxima::{
    engine::News,
    members::{
        MemberId,
        copies::{Act, Agreement, Debt, Incarnation, Owed, Standing},
    },
};

use crate::world::World;

const LIFE: Incarnation = Incarnation {
    pid: 1,
    uptime: Duration::ZERO,
};

pub(crate) struct Control {
    pub(crate) agreement: Agreement,
    orders: [VecDeque<(MemberId, u64, Standing)>; 2],
    news: VecDeque<News>,
    watched: Vec<(MemberId, u64)>,
    paying: Vec<(MemberId, u64, Debt)>,
}

impl Control {
    pub(crate) fn new(copies: usize) -> Self {
        let mut agreement = Agreement::new(2);
        agreement.group("p", copies, copies / 2 + 1);
        Self {
            agreement,
            orders: Default::default(),
            news: VecDeque::new(),
            watched: Vec::new(),
            paying: Vec::new(),
        }
    }

    fn perform(&mut self, acts: Vec<Act>) {
        for act in acts {
            match act {
                Act::Propose {
                    member,
                    epoch,
                    standing,
                } => {
                    for orders in &mut self.orders {
                        orders.push_back((member, epoch, standing));
                    }
                }
                Act::Note { member, epoch } => {
                    let acts = self.agreement.noted(member, epoch);
                    self.perform(acts);
                }
                Act::Watch { member, epoch, .. } => self.watched.push((member, epoch)),
                Act::Pay {
                    member, epoch, debt, ..
                } => self.paying.push((member, epoch, debt)),
            }
        }
    }

    /// A worker hears its next order.
    pub(crate) fn order(&mut self, number: usize, worker: &mut World) {
        if let Some((member, epoch, standing)) = self.orders[number].pop_front() {
            worker.engine.follow(member, epoch, standing);
            worker.turn();
        }
    }

    /// What a worker says is on its way.
    pub(crate) fn collect(&mut self, worker: &mut World) {
        self.news.extend(worker.engine.wishes.news.drain(..));
    }

    /// Hears the next of it.
    pub(crate) fn hear(&mut self) {
        let now = Instant::now();
        let acts = match self.news.pop_front() {
            Some(News::Missed(member, why)) => {
                self.agreement.missed(member.id, "p", &why, Owed::default(), now)
            }
            Some(News::Follows {
                worker,
                member,
                epoch,
                owed,
            }) => self.agreement.acknowledged(worker, member, epoch, owed, now),
            Some(
                News::Ejected(..)
                | News::Short(_)
                | News::Broken(..)
                | News::Stranger(..)
                | News::Ended { .. },
            )
            | None => Vec::new(),
        };
        self.perform(acts);
    }

    /// Looks at a copy that is out.
    pub(crate) fn look(&mut self) {
        if let Some((member, epoch)) = self.watched.pop() {
            let acts = self.agreement.reachable(member, epoch, true);
            if acts.is_empty() && self.agreement.is_watched(member, epoch) {
                self.watched.insert(0, (member, epoch));
            }
            self.perform(acts);
        }
    }

    /// Pays a debt at its server, unless that may still execute what came by a connection that broke.
    pub(crate) fn pay(&mut self, servers: &mut [World], lags: impl Fn(usize) -> bool) {
        if let Some((member, epoch, debt)) = self.paying.pop() {
            let number = member.0 as usize;
            let result = if lags(number) {
                Err("an old connection is still there".to_owned())
            } else {
                let server = &mut servers[number];
                let seat = server.client();
                match debt.keys() {
                    Some(keys) => {
                        for key in keys {
                            server.say(seat, &[b"delete ", key, b"\r\n"].concat());
                        }
                    }
                    None => server.say(seat, b"flush_all\r\n"),
                }
                Ok((LIFE, "paid".to_owned()))
            };
            let acts = self.agreement.paid(member, epoch, result, Instant::now());
            self.perform(acts);
        }
    }
}
