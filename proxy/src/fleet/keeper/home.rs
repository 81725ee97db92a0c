//! The home of a key: the peer that decides the result of `incr`, `cas`, `add` and the like.

use std::sync::Arc;

use crate::fleet::{Peer, View};

/// Mixes the bits of a number. The constants are those of the finalizer of MurmurHash3.
const fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

/// The peer of this view that decides the key with this hash: the one with the highest score among those that
/// decide (rendezvous hashing), so that a peer that comes or goes moves only the keys that it decides.
pub fn home(view: &View, hash: u64) -> Option<&Peer> {
    let deciders = view.peers.iter().filter(|peer| peer.decides);
    deciders.max_by_key(|peer| (mix(hash ^ mix(u64::from(peer.slot.0) + 1)), peer.slot))
}

/// The views of which a decision may still be under way at any peer, the newest last.
#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) views: Vec<Arc<View>>,
}

impl History {
    /// A worker may miss views that were soon replaced. Another peer may have begun to decide in them, so a
    /// view without any home stands for them.
    pub(super) fn add(&mut self, view: Arc<View>) {
        let newest = self.views.last().map_or(0, |view| view.number);
        if newest + 1 < view.number {
            self.views.push(Arc::new(View {
                number: view.number - 1,
                peers: Vec::new(),
            }));
        }
        self.views.push(view);
    }

    /// Decisions that began before view `settled` have ended at all peers.
    pub(super) fn settle(&mut self, settled: u64) {
        let newest = self.views.last().map_or(0, |view| view.number);
        self.views
            .retain(|view| view.number >= settled || view.number == newest);
    }

    /// May a decision of this stay of a peer be under way? It is unknown which peer decided in a view that
    /// was missed.
    pub(super) fn knows_home(&self, stay: (crate::fleet::Slot, crate::fleet::Stay), hash: u64) -> bool {
        let is_home = |view: &Arc<View>| home(view, hash).is_some_and(|peer| (peer.slot, peer.stay) == stay);
        self.views
            .iter()
            .any(|view| view.peers.is_empty() || is_home(view))
    }

    /// May this stay of a peer decide the key now? No decision of another home may still be under way.
    pub(super) fn allows(&self, stay: (crate::fleet::Slot, crate::fleet::Stay), hash: u64) -> bool {
        let is_home = |view: &Arc<View>| home(view, hash).is_some_and(|peer| (peer.slot, peer.stay) == stay);
        !self.views.is_empty() && self.views.iter().all(is_home)
    }
}
