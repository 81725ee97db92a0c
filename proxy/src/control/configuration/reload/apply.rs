//! Performs the steps of a change that cannot fail, in order.
//!
//! A step locks the state only to read it, to replace it and to send orders. Wherever it waits for the
//! workers it holds no lock, so that requests, the admin port and signals go on meanwhile.

use std::{
    mem,
    sync::{
        Arc,
        mpsc::{self, Sender},
    },
    time::SystemTime,
};

use socket2::Socket;

use super::{Change, plan::Step, prepare::Opened};
use crate::{
    control::{Proxy, State, workers::wait},
    route::Orders,
    worker::Order,
};

impl Proxy {
    /// Performs what is left of a change. Returns when every worker serves by it.
    pub(in crate::control) fn apply(self: &Arc<Self>, mut change: Change) {
        for warning in &change.warnings {
            tracing::warn!("{warning}");
        }
        for step in mem::take(&mut change.steps) {
            match step {
                // `prepare` has performed them.
                Step::Bind { .. } | Step::Permit { .. } => {}
                Step::WarnOfRestart(key) => tracing::warn!(
                    "`{key}` has changed, and is read at the start only: it takes effect with a restart"
                ),
                Step::ProvideDescriptors(need) => {
                    let room = self.state().descriptors.provide(need);
                    self.register.set_room(room);
                }
                Step::RemoveCopies(copies) => self.remove_copies(&copies),
                Step::Exchange { close, .. } => self.exchange(&mut change, &close),
                Step::Record => self.record(&mut change),
            }
        }
    }

    /// Gives every worker its tree, and waits until all serve by it.
    fn exchange(self: &Arc<Self>, change: &mut Change, close: &[u16]) {
        let (done, all) = mpsc::channel();
        let left;
        {
            let state = &mut *self.state();
            state.members.clone_from(&change.members);
            left = Self::follow_near(state, &change.setup.loaded.config, &change.tree);
            state.loaded = change.setup.loaded.clone();
            state.servers = mem::take(&mut change.setup.servers);
            state.departed = change.setup.departed.clone();
            state.hosts = mem::take(&mut change.setup.hosts);
            // What this proposes reaches each worker before its tree, and whatever follows from it
            // afterwards: a copy that comes is thus read only when every worker writes to it.
            self.add_copies(state, &change.before);
            let orders = state
                .localities
                .as_deref()
                .map_or_else(Orders::default, |localities| change.tree.orders(localities));
            for tree in change.trees.iter().chain([&change.tree]) {
                tree.follow(&orders);
            }
            // With the trees: orders of `nearest` that the node agent changes from now on are for these.
            mem::swap(&mut state.tree, &mut change.tree);
            self.send_trees(state, change, close, &done);
        }
        drop(done);
        wait(&all);
        self.free_near(left);
    }

    fn send_trees(&self, state: &State, change: &mut Change, close: &[u16], done: &Sender<()>) {
        if !state.accepts {
            // The drain has begun since they were bound.
            change.opened.clear();
        }
        let opened = change.opened.iter_mut();
        let mut sockets: Vec<(u16, std::vec::IntoIter<Socket>)> = opened
            .map(|opened| (opened.number, mem::take(&mut opened.sockets).into_iter()))
            .collect();
        let limits = &state.loaded.config.limits;
        let mut trees = mem::take(&mut change.trees).into_iter();
        self.workers.order(|_| {
            let Some(tree) = trees.next() else {
                return Order::Stop;
            };
            let sockets = sockets.iter_mut();
            Order::Swap {
                tree: Box::new(tree),
                limits: limits.clone(),
                open: sockets
                    .filter_map(|(number, all)| Some((*number, all.next()?)))
                    .collect(),
                close: close.to_vec(),
                done: done.clone(),
            }
        });
    }

    fn record(&self, change: &mut Change) {
        let state = &mut *self.state();
        let bound = mem::take(&mut state.bound).into_iter();
        let wanted = &change.setup.loaded.config.listeners;
        let is_wanted = |address: &String| wanted.iter().any(|listener| listener.address == *address);
        state.bound = bound
            .chain(std::iter::repeat(None))
            .zip(&change.listeners)
            .map(|(bound, address)| bound.filter(|_| is_wanted(address)))
            .collect();
        for Opened { number, address, .. } in mem::take(&mut change.opened) {
            state.bound[usize::from(number)] = Some(address);
        }
        state.listeners = mem::take(&mut change.listeners);
        state.version = Arc::clone(&state.tree.version);
        state.changed = SystemTime::now();
        self.register.listening(&state.bound);
        self.nodes.send_if_modified(|nodes| {
            let wanted = &state.loaded.config.nodes;
            let differs = nodes != wanted;
            nodes.clone_from(wanted);
            differs
        });
        self.forget_ejections(state, &change.before);
        self.recount(state);
        tracing::info!(version = %state.version, members = state.members.len(), "configuration in effect");
    }
}
