//! Answers requests of clients about the whole process, as their protocols say.

use std::sync::{Arc, mpsc};

use tokio::{
    sync::{Semaphore, mpsc::UnboundedReceiver},
    task::spawn_blocking,
};

use super::Proxy;
use crate::{
    client::Question,
    protocol::{Control, NearFigures},
    worker::Order,
};

/// So many questions are answered at a time.
const AT_ONCE: usize = 16;

/// Answers for as long as the process lives. An answer may wait for workers and servers.
pub(super) async fn answer_clients(proxy: Arc<Proxy>, mut questions: UnboundedReceiver<Question>) {
    let places = Arc::new(Semaphore::new(AT_ONCE));
    while let Some(question) = questions.recv().await {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let proxy = Arc::clone(&proxy);
        spawn_blocking(move || {
            let mut answer = Vec::new();
            let protocol = question.protocol;
            protocol.consulted(&question.message, &Process(&proxy), &mut answer);
            proxy.answer(&question, answer.into());
            drop(place);
        });
    }
}

/// The process, as a codec may use it.
struct Process<'a>(&'a Proxy);

impl Control for Process<'_> {
    fn cancel(&self, session: u64) -> bool {
        let (done, told) = mpsc::channel();
        self.0.workers.order(|_| Order::Cancel {
            session,
            done: done.clone(),
        });
        drop(done);
        told.iter().any(|agreed| agreed)
    }

    fn near(&self) -> NearFigures {
        self.0.near_figures()
    }
}
