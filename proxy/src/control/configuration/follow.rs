//! Follows what the configuration depends on (files, DNS, the grace of departed copies, requests of
//! operators) and makes the changes that follow from it, one after another.

use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{
    sync::{mpsc, oneshot},
    task::spawn_blocking,
    time::{MissedTickBehavior, interval, sleep, sleep_until},
};

use super::reload::{Cause, ReloadError, Reloader};
use crate::control::{Proxy, configuration::Configuration, surroundings::file_watcher::FileWatcher};

/// Time between two looks at the files: five looks within the second in which a change must take effect.
const LOOK: Duration = Duration::from_millis(200);
/// Time until the end of a departed copy's grace is put into effect again, if that was refused.
const AGAIN: Duration = Duration::from_secs(1);
/// Requests of operators that may wait for an earlier change. Further operators wait to hand in theirs.
pub(in crate::control) const REQUESTS: usize = 16;

/// A request for a change.
pub(in crate::control) struct Request {
    cause: Cause,
    /// Where the result goes. `None`: nobody waits for it.
    answer: Option<oneshot::Sender<Result<bool, ReloadError>>>,
}

impl Proxy {
    /// Reads the configuration again; the running one stays if it is refused. Returns whether anything
    /// changed.
    ///
    /// # Errors
    /// The configuration was refused, which is also logged and counted.
    pub async fn reload(&self) -> Result<bool, ReloadError> {
        self.change(Cause::Text).await
    }

    /// Makes a change behind those that are under way. Returns whether anything has changed.
    ///
    /// # Errors
    /// The change was refused, which is also logged and counted.
    async fn change(&self, cause: Cause) -> Result<bool, ReloadError> {
        let (answer, result) = oneshot::channel();
        let answer = Some(answer);
        // Neither the sending nor the answer fails before the process ends.
        let _ = self.requests.send(Request { cause, answer }).await;
        result.await.unwrap_or(Ok(false))
    }

    /// Opens the listeners again behind the changes that are under way.
    ///
    /// # Errors
    /// One of them cannot be opened, which is also logged and counted.
    pub(in crate::control) async fn open_listeners_again(&self) -> Result<bool, ReloadError> {
        self.change(Cause::Listeners).await
    }

    /// Has the configuration read again soon, and does not wait for it.
    pub(in crate::control) fn request_reload(&self) {
        // Where there is no room, a request that waits already will see the same files.
        let (cause, answer) = (Cause::Text, None);
        let _ = self.requests.try_send(Request { cause, answer });
    }
}

impl Configuration {
    /// The files that make it up.
    fn files(&self) -> Vec<PathBuf> {
        self.loaded.files_watched.clone()
    }
}

/// Follows changes until the process ends. The configuration is read once at the beginning: a file may have
/// changed since the start has read it.
pub(in crate::control) async fn follow(
    mut reloader: Reloader,
    proxy: Arc<Proxy>,
    mut requests: mpsc::Receiver<Request>,
) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut files = FileWatcher::default();
    files.changed(proxy.rooms().configuration.files());
    let follows_files = proxy.source.follows();
    if follows_files {
        proxy.request_reload();
    }
    let mut not_before = Instant::now();
    loop {
        let (cause, answer) = tokio::select! {
            _ = look.tick(), if follows_files => {
                // A file system that hangs must not hold up the control thread.
                let watched = proxy.rooms().configuration.files();
                let looking = spawn_blocking(move || {
                    let has_changed = files.changed(watched);
                    (files, has_changed)
                });
                let Ok((same, has_changed)) = looking.await else {
                    return;
                };
                files = same;
                if !has_changed {
                    continue;
                }
                sleep(proxy.source.delay()).await;
                (Cause::Text, None)
            }
            () = proxy.names.changed() => {
                proxy.names.settled().await;
                (Cause::Servers, None)
            }
            () = grace_ends(&proxy, not_before) => {
                // What ends a grace may be refused: it is tried again in a while.
                not_before = Instant::now() + AGAIN;
                (Cause::Servers, None)
            }
            Some(Request { cause, answer }) = requests.recv() => (cause, answer),
            else => return,
        };
        let changing = spawn_blocking(move || {
            let result = reloader.change(cause);
            (reloader, result)
        });
        // The task is cancelled only when the process ends.
        let Ok((same, result)) = changing.await else {
            return;
        };
        reloader = same;
        if let Some(answer) = answer {
            // The result was logged and counted, even if nobody waits for it any more.
            let _ = answer.send(result);
        }
    }
}

/// Returns when the grace of a departed copy has ended, and not before that time.
async fn grace_ends(proxy: &Proxy, not_before: Instant) {
    let until = proxy.rooms().membership.departed().until();
    match until {
        Some(until) => sleep_until(until.max(not_before).into()).await,
        None => std::future::pending().await,
    }
}
