//! A connection from a coordinator to a keeper: what goes one way, and what comes back, each in its order.

use proxima::fleet::{Stamp, Stay};

/// What a coordinator sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Frame {
    Change {
        view: u64,
        sequence: u64,
        stamp: Stamp,
        /// The value that is set; `None`: the key is deleted.
        value: Option<u8>,
    },
    Confirm {
        view: u64,
        up_to: u64,
    },
}

impl Frame {
    /// The number of its view.
    pub(crate) fn view(&self) -> u64 {
        match self {
            Self::Change { view, .. } | Self::Confirm { view, .. } => *view,
        }
    }
}

/// What a keeper says of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Said {
    /// Its copy has it.
    Applied,
    /// Its copy is not read.
    Missed,
    /// Its copy has a newer one.
    Superseded,
    /// It is in this view.
    View(u64),
    /// It has a decided change of this later stamp.
    Decided(Stamp),
}

/// What comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Ack {
    pub(crate) sequence: u64,
    pub(crate) clock: Stamp,
    pub(crate) said: Said,
}

/// The link from one proxy to another.
#[derive(Clone, Debug, Default, Hash)]
pub(crate) struct Link {
    /// The stays of coordinator and keeper; `None`: there is no link.
    pub(crate) stays: Option<(Stay, Stay)>,
    /// Which of all links between the two it is: an acknowledgement goes back by the one that the change
    /// came by.
    pub(crate) number: u8,
    pub(crate) frames: Vec<Frame>,
    pub(crate) acks: Vec<Ack>,
}

impl Link {
    /// The link ends, with what is under way on it.
    pub(crate) fn close(&mut self) {
        self.stays = None;
        self.frames.clear();
        self.acks.clear();
    }

    /// A new one takes its place.
    pub(crate) fn open(&mut self, stays: (Stay, Stay)) {
        self.close();
        (self.stays, self.number) = (Some(stays), self.number + 1);
    }
}
