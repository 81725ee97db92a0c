//! Samples of requests for those who watch. The workers put some only while somebody takes them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

use tokio::{
    sync::broadcast::{Receiver, Sender, channel},
    time::sleep,
};

use crate::{
    control::{Proxy, Trace},
    route::Sample,
};

/// Time between two looks at what the workers have put.
const PACE: Duration = Duration::from_millis(100);
/// Samples that are wanted of a look: five hundred to two thousand a second.
const FEW: usize = 50;
/// Samples that wait for one who watches; the oldest are lost to it.
const WAITING: usize = 4096;

/// A sample, and the way of its request.
pub(super) type Traced = Arc<(Sample, Trace)>;

/// Tells samples to those who watch.
#[derive(Clone)]
pub(super) struct Sampling(Arc<Shared>);

struct Shared {
    proxy: Arc<Proxy>,
    to: Sender<Traced>,
    runs: AtomicBool,
}

impl Sampling {
    pub(super) fn new(proxy: &Arc<Proxy>) -> Self {
        Self(Arc::new(Shared {
            proxy: Arc::clone(proxy),
            to: channel(WAITING).0,
            runs: AtomicBool::new(false),
        }))
    }

    /// Those that come from now on.
    pub(super) fn follow(&self) -> Receiver<Traced> {
        let samples = self.0.to.subscribe();
        if !self.0.runs.swap(true, SeqCst) {
            tokio::spawn(tell(Arc::clone(&self.0)));
        }
        samples
    }

    pub(super) fn proxy(&self) -> &Arc<Proxy> {
        &self.0.proxy
    }
}

/// Tells samples until nobody takes them any more.
async fn tell(shared: Arc<Shared>) {
    shared.proxy.samples().begin();
    shared.proxy.tap(true);
    loop {
        sleep(PACE).await;
        for sample in shared.proxy.samples().take(FEW) {
            let trace = shared.proxy.trace(&sample);
            // Those who have just gone need no sample.
            let _ = shared.to.send(Arc::new((sample, trace)));
        }
        if shared.to.receiver_count() == 0 {
            shared.proxy.tap(false);
            shared.runs.store(false, SeqCst);
            // Whoever came between the two lines has started no task of its own.
            if shared.to.receiver_count() == 0 || shared.runs.swap(true, SeqCst) {
                return;
            }
            shared.proxy.tap(true);
        }
    }
}
