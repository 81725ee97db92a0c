//! Connections to each address, one of which a client has for a request.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
};

use parking_lot::{Condvar, Mutex};

use super::{link::Link, options::Options};

/// The connections of one client, or those that all clients share.
pub(super) struct Pools<'a>(BTreeMap<SocketAddr, Pool<'a>>);

struct Pool<'a> {
    free: Mutex<VecDeque<Link<'a>>>,
    returned: Condvar,
}

impl<'a> Pools<'a> {
    /// `size` connections to each address of a run. They are made when they are used first.
    pub(super) fn new(options: &'a Options, size: u32) -> Self {
        let pool = |address| Pool {
            free: Mutex::new((0..size).map(|_| Link::new(address, options)).collect()),
            returned: Condvar::new(),
        };
        let addresses = options.addresses().into_iter();
        Self(addresses.map(|address| (address, pool(address))).collect())
    }

    /// Asks over the connection to `address` that was not used for the longest time. Waits until one is free.
    pub(super) fn with<T>(&self, address: SocketAddr, ask: impl FnOnce(&mut Link<'a>) -> T) -> T {
        let pool = &self.0[&address];
        let mut free = pool.free.lock();
        let mut link = loop {
            match free.pop_front() {
                Some(link) => break link,
                None => pool.returned.wait(&mut free),
            }
        };
        drop(free);
        let answer = ask(&mut link);
        pool.free.lock().push_back(link);
        pool.returned.notify_one();
        answer
    }
}
