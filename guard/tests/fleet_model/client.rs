//! What clients have asked and were answered, and what they must not see.

use proxima::fleet::Stamp;

/// A value of the one key, and the stamp of the change that brought it. Value 0 was there before everything;
/// client `n` brings value `n + 1`.
pub(crate) type Content = Option<(u8, Stamp)>;

/// How far a request is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) enum Progress {
    /// It has not been made.
    #[default]
    Idle,
    /// It is under way, at this proxy.
    UnderWay(usize),
    /// It was answered: done.
    Done,
    /// It was answered: it may have been done, or not.
    Failed,
}

/// A client with one request.
#[derive(Clone, Copy, Debug, Default, Hash)]
pub(crate) struct Client {
    pub(crate) progress: Progress,
    /// The stamp of its change, the last one if it was drawn again.
    pub(crate) stamp: Stamp,
    /// The clients that had been answered when it began, a bit for each.
    after: u16,
    /// What its value was computed from.
    pub(crate) base: Content,
}

/// All clients.
#[derive(Clone, Debug, Hash)]
pub(crate) struct Clients(pub(crate) Vec<Client>);

impl Clients {
    /// This client asks this proxy.
    pub(crate) fn begin(&mut self, number: usize, proxy: usize) {
        let done = |client: &Client| client.progress == Progress::Done;
        let after = self.0.iter().enumerate().filter(|(_, client)| done(client));
        let after = after.fold(0, |after, (other, _)| after | 1 << other);
        self.0[number] = Client {
            progress: Progress::UnderWay(proxy),
            after,
            ..Client::default()
        };
    }

    fn done(&self) -> impl Iterator<Item = (u8, &Client)> {
        let done = |(_, client): &(usize, &Client)| client.progress == Progress::Done;
        let all = self.0.iter().enumerate().filter(done);
        all.map(|(number, client)| (number as u8 + 1, client))
    }

    /// Is this content older than one that a client was told of? A read that begins now must not find it.
    pub(crate) fn is_stale(&self, (value, stamp): (u8, Stamp)) -> bool {
        self.done().any(|(newer, client)| {
            let in_time = value > 0
                && self.0[usize::from(value) - 1].progress == Progress::Done
                && client.after & 1 << (value - 1) != 0;
            newer != value && (stamp < client.stamp || in_time)
        })
    }

    /// Has this decision lost, or would it lose, a change that a client was told of?
    fn forgets(&self, decided: u8) -> bool {
        let decision = &self.0[usize::from(decided) - 1];
        let Some((_, base)) = decision.base else {
            return false;
        };
        self.done()
            .any(|(other, client)| other != decided && base < client.stamp && client.stamp < decision.stamp)
    }

    /// What is wrong with the answers so far.
    pub(crate) fn wrong(&self) -> Option<String> {
        for (value, client) in self.done() {
            let Some((base, _)) = client.base else { continue };
            if self.forgets(value) {
                return Some(format!(
                    "the decided value {value} has not seen a change that was acknowledged"
                ));
            }
            let same = |(other, client): (u8, &Client)| {
                other != value && client.base.is_some_and(|(other, _)| other == base)
            };
            if self.done().any(same) {
                return Some(format!("two decisions from value {base} were acknowledged"));
            }
        }
        None
    }
}
