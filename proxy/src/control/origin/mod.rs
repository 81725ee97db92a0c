//! Fetches values from HTTP origins for the workers, which wait for nothing themselves.
//!
//! ```text
//!  worker ─ event ─▶ Proxy::fetch ─▶ client ─ a connection that is kept ─▶ origin
//!  worker ◀─ order ──────┘             └─ receive: status, fields, body within bounds
//! ```
//!
//! Invariant: each fetch has one answer, within the origin's `timeout` and little more. Invariant: the bodies
//! that are being read take no more memory than `requests` values of the size that their rules allow.

mod client;
mod failure;
mod receive;

use std::sync::{Arc, Mutex, PoisonError};

use self::client::Client;
use crate::{
    control::Proxy,
    engine::FlightId,
    near::{Fetch, HttpOrigin},
    worker::Order,
};

/// Clients that are remembered although no tree may name their origins any more.
const REMEMBERED: usize = 64;

/// The clients of all origins.
#[derive(Default)]
pub(super) struct Origins(Mutex<Vec<Arc<Client>>>);

impl Origins {
    /// The client of this origin.
    fn client(&self, origin: &Arc<HttpOrigin>) -> Arc<Client> {
        let mut clients = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = clients.iter().find(|client| client.is_of(origin)) {
            return Arc::clone(known);
        }
        if clients.len() >= REMEMBERED {
            clients.retain(|client| Arc::strong_count(client) > 1);
        }
        let client = Arc::new(Client::new(Arc::clone(origin)));
        clients.push(Arc::clone(&client));
        client
    }
}

impl Proxy {
    /// Fetches a value for a worker, and tells it.
    pub(super) fn fetch(self: &Arc<Self>, worker: usize, flight: FlightId, fetch: Fetch) {
        let client = self.origins.client(&fetch.origin);
        let proxy = Arc::clone(self);
        self.runtime.spawn(async move {
            let fetched = Box::new(client.fetch(&fetch).await);
            proxy
                .workers
                .order_one(worker, Order::Fetched { flight, fetched });
        });
    }
}
