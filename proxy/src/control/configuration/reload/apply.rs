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

use super::{Change, plan::Step, prepare::OpenListener};
use crate::{
    control::{Proxy, Rooms, workers::wait},
    event_log::kind,
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
                    let room = self.rooms().listening.descriptors().provide(need);
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
            let rooms = &mut *self.rooms();
            left = Self::follow_near(&rooms.configuration, &change.setup.loaded.config, &change.tree);
            let configuration = &mut rooms.configuration;
            configuration.loaded = change.setup.loaded.clone();
            configuration.servers = mem::take(&mut change.setup.servers);
            configuration.hosts = mem::take(&mut change.setup.hosts);
            let (members, departed) = (change.members.clone(), change.setup.departed.clone());
            rooms.membership.replace(members, departed);
            // What this proposes reaches each worker before its tree, and whatever follows from it
            // afterwards: a copy that comes is thus read only when every worker writes to it.
            self.add_copies(rooms, &change.before);
            let orders = rooms.surroundings.orders(&change.tree);
            for tree in change.trees.iter().chain([&change.tree]) {
                tree.follow(&orders);
            }
            // With the trees: orders of `nearest` that the node agent changes from now on are for these.
            mem::swap(&mut rooms.configuration.tree, &mut change.tree);
            self.send_trees(rooms, change, close, &done);
        }
        drop(done);
        wait(&all);
        self.free_near(left);
    }

    fn send_trees(&self, rooms: &Rooms, change: &mut Change, close: &[u16], done: &Sender<()>) {
        if !rooms.listening.accepts() {
            // The drain has begun since they were bound.
            change.opened.clear();
        }
        let opened = change.opened.iter_mut();
        let mut sockets: Vec<(u16, std::vec::IntoIter<Socket>)> = opened
            .map(|opened| (opened.number, mem::take(&mut opened.sockets).into_iter()))
            .collect();
        let limits = &rooms.configuration.loaded.config.limits;
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
        let rooms = &mut *self.rooms();
        let wanted = &change.setup.loaded.config.listeners;
        let opened = mem::take(&mut change.opened).into_iter();
        rooms.listening.record(
            mem::take(&mut change.listeners),
            |address| wanted.iter().any(|listener| listener.address == *address),
            opened.map(|OpenListener { number, address, .. }| (number, address)),
        );
        self.register.listening(rooms.listening.bound());
        let configuration = &mut rooms.configuration;
        configuration.version = Arc::clone(&configuration.tree.version);
        configuration.changed = SystemTime::now();
        self.nodes.send_if_modified(|nodes| {
            let wanted = &configuration.loaded.config.nodes;
            let differs = nodes != wanted;
            nodes.clone_from(wanted);
            differs
        });
        let version = Arc::clone(&configuration.version);
        self.follow_ejections(rooms, &change.before);
        let members = rooms.membership.members().len();
        tracing::info!(target: kind::CONFIGURATION, %version, members, "configuration in effect");
    }
}
