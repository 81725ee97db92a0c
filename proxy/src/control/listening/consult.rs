//! Answers requests of clients about the whole process, as their protocols say.

use std::sync::{Arc, mpsc};

use tokio::{
    sync::{Semaphore, mpsc::UnboundedReceiver},
    task::spawn_blocking,
};

use crate::{
    client::Question,
    control::Proxy,
    protocol::{Control, Ending, NearCounters},
    worker::Order,
};

/// Questions that are answered at a time.
const AT_ONCE: usize = 16;

/// Answers for as long as the process lives. An answer may wait for workers and servers.
pub(in crate::control) async fn answer_clients(
    proxy: Arc<Proxy>,
    mut questions: UnboundedReceiver<Question>,
) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(question) = questions.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let proxy = Arc::clone(&proxy);
        spawn_blocking(move || {
            let mut answer = Vec::new();
            let protocol = question.protocol;
            let process = Process {
                proxy: &proxy,
                login: Arc::clone(&question.login),
                listener: question.listener,
            };
            protocol.consulted(&question.message, &process, &mut answer);
            proxy.answer(&question, answer.into());
            drop(place);
        });
    }
}

/// The process, as a codec may use it for a client.
struct Process<'a> {
    proxy: &'a Proxy,
    /// The login of the client, in the codec's words.
    login: Arc<[u8]>,
    /// The number of its listener.
    listener: u16,
}

impl Control for Process<'_> {
    fn cancel(&self, session: u64, ending: Ending) -> bool {
        let (done, told) = mpsc::channel();
        self.proxy.workers.order(|_| Order::Cancel {
            session,
            ending,
            by: Arc::clone(&self.login),
            listener: self.listener,
            done: done.clone(),
        });
        drop(done);
        told.iter().any(|agreed| agreed)
    }

    fn near(&self) -> NearCounters {
        self.proxy.near_counters()
    }
}
