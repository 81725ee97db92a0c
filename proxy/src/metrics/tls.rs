//! Counters of TLS.

use crate::tls::Failure;

/// Counts about TLS.
#[derive(Clone, Debug, Default)]
pub struct TlsCounts {
    /// Handshakes of clients.
    pub clients: HandshakeCounts,
    /// Handshakes at servers.
    pub servers: HandshakeCounts,
}

/// How handshakes have ended, and connections after them.
#[derive(Clone, Debug, Default)]
pub struct HandshakeCounts {
    /// The two ends have agreed on everything anew.
    pub full: u64,
    /// They have gone on with an earlier agreement.
    pub resumed: u64,
    /// They have not agreed, by the number of the reason in [`Failure::ALL`].
    failed: [u64; Failure::ALL.len()],
    /// Connections that the other end has closed without a goodbye, after the handshake.
    pub cut: u64,
}

impl HandshakeCounts {
    /// Counts a handshake that came to nothing.
    pub fn fail(&mut self, why: Failure) {
        self.failed[why as usize] += 1;
    }

    /// Each result with its number.
    pub fn results(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let failed = Failure::ALL.iter().zip(self.failed);
        let failed = failed.map(|(why, count)| (why.name(), count));
        [("full", self.full), ("resumed", self.resumed)]
            .into_iter()
            .chain(failed)
    }

    fn add(&mut self, other: &Self) {
        self.full += other.full;
        self.resumed += other.resumed;
        self.cut += other.cut;
        let failed = self.failed.iter_mut().zip(other.failed);
        failed.for_each(|(mine, theirs)| *mine += theirs);
    }
}

impl TlsCounts {
    pub(super) fn add(&mut self, other: &Self) {
        self.clients.add(&other.clients);
        self.servers.add(&other.servers);
    }
}
