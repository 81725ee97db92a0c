//! What the near cache has freed goes back to the system.
//!
//! The allocator has a heap for each thread. What one thread has kept is freed by whichever keeps the next
//! reply, and stays in the heap of the first until that is told to look.

use std::{sync::Arc, time::Duration};

use tokio::time::{MissedTickBehavior, interval};

use crate::{control::Proxy, reactor::give_back, worker::Order};

/// Time between two looks at how much was freed.
const LOOK: Duration = Duration::from_millis(250);

impl Proxy {
    /// Has every thread give back what is free of its memory.
    pub(in crate::control) fn give_back(&self) {
        self.workers.order(|_| Order::GiveBack);
        give_back();
    }

    /// Has memory given back whenever much was freed, for as long as the process lives.
    pub(in crate::control) async fn watch_near_memory(self: Arc<Self>) {
        let mut look = interval(LOOK);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            look.tick().await;
            let near = self.rooms().configuration.tree().near().cloned();
            if near.is_some_and(|near| near.store.has_freed_much()) {
                self.give_back();
            }
        }
    }
}
