//! Since when something is so, as pages tell it.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::control::Proxy;

/// How pages tell times.
#[derive(Clone, Copy, Debug)]
pub(super) enum Clock {
    /// As seconds until this moment.
    Ago(Instant),
    /// As milliseconds since 1970, by a moment of which both times are known: they stay the same from one look
    /// to the next.
    Unix { start: Instant, start_ms: u64 },
}

impl Clock {
    pub(super) fn unix(proxy: &Proxy) -> Self {
        let (start, since) = proxy.start();
        Self::Unix {
            start,
            start_ms: since.as_millis() as u64,
        }
    }

    pub(super) fn tell(self, since: Instant) -> Since {
        match self {
            Self::Ago(now) => Since::Ago {
                since: now.duration_since(since).as_secs_f64(),
            },
            Self::Unix { start, start_ms } => {
                let ms = |time: Duration| time.as_millis() as u64;
                // What began before the process did is told from its start on.
                Since::At {
                    since_ms: start_ms + ms(since.saturating_duration_since(start)),
                }
            }
        }
    }
}

/// Since when.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Since {
    /// For so many seconds.
    Ago { since: f64 },
    /// Milliseconds since 1970.
    At { since_ms: u64 },
}
