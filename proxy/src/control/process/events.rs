//! What workers tell the control thread.

use std::sync::Arc;

use tokio::sync::mpsc::UnboundedReceiver;

use crate::{control::Proxy, engine::WorkerEvent, random::Random};

use crate::event_log::kind;

impl Proxy {
    /// Hands each event to the room that it concerns, for as long as the process lives.
    pub(super) async fn hear_workers(self: Arc<Self>, mut events: UnboundedReceiver<WorkerEvent>) {
        let mut seed = u64::from(std::process::id());
        while let Some(event) = events.recv().await {
            match event {
                WorkerEvent::Ejected(member, reason) => {
                    self.ejected_by_worker(member, reason, Random(seed));
                    seed = seed.wrapping_add(1);
                }
                WorkerEvent::Short(why) => self.log_shortage(&why),
                WorkerEvent::Broken(what) => {
                    tracing::error!(target: kind::DEFECT, what, "a worker is in a state that cannot be: please report this");
                }
                WorkerEvent::Copy(event) => self.hear_of_copy(event),
                WorkerEvent::Peer(event) => {
                    if let Some((_, events)) = &self.fleet {
                        let _ = events.send(event);
                    }
                }
                WorkerEvent::ForeignProtocol(reason) => tracing::warn!(%reason, "closed a client"),
                WorkerEvent::Question(question) => {
                    let _ = self.questions.send(question);
                }
                WorkerEvent::Fetch {
                    worker,
                    flight,
                    fetch,
                } => self.fetch(worker, flight, *fetch),
                WorkerEvent::Shutdown => self.shutdown.notify_one(),
                WorkerEvent::Ended { unanswered } => self.hear_of_end(unanswered),
            }
        }
    }
}
