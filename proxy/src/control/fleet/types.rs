//! The types of the log, for Raft.

use std::io::Cursor;

use openraft::BasicNode;

use crate::fleet::Change;

openraft::declare_raft_types!(
    /// The types of the log.
    pub(super) Types:
        D = Change,
        R = bool,
        NodeId = u64,
        Node = BasicNode,
        Entry = openraft::Entry<Types>,
        SnapshotData = Cursor<Vec<u8>>,
);
