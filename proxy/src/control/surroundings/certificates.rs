//! Follows the files of certificates, apart from those of the configuration: a file that cannot be used is no
//! reason to refuse a configuration, and to use new ones no worker needs another tree.

use std::{sync::Arc, time::Duration};

use crate::control::Proxy;
use tokio::{
    task::spawn_blocking,
    time::{MissedTickBehavior, interval},
};

/// Time between two looks at the files.
const LOOK: Duration = Duration::from_millis(200);

/// Looks at the files of certificates until the process ends.
pub(in crate::control) async fn follow_certificates(proxy: Arc<Proxy>) {
    let mut look = interval(LOOK);
    look.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        look.tick().await;
        let certificates = Arc::clone(&proxy.certificates);
        if !certificates.are_used() {
            // The thread that would look takes memory.
            continue;
        }
        // A file system that hangs must not hold up the control thread.
        if spawn_blocking(move || certificates.look()).await.is_err() {
            tracing::error!("a look at the files of certificates has failed");
        }
    }
}
