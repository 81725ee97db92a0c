//! The status that a server tells in OK and EOF packets.

/// Status flags as a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Status(pub u16);

impl Status {
    /// A transaction is open.
    pub const IN_TRANSACTION: Self = Self(1);
    /// Each statement is a transaction of its own.
    pub const AUTOCOMMIT: Self = Self(1 << 1);
    /// Another result follows.
    pub const MORE_RESULTS: Self = Self(1 << 3);
    /// The rows wait in a cursor.
    pub const CURSOR_EXISTS: Self = Self(1 << 6);
    /// The cursor has no further row.
    pub const LAST_ROW_SENT: Self = Self(1 << 7);
    /// `sql_mode` has NO_BACKSLASH_ESCAPES.
    pub const NO_BACKSLASH_ESCAPES: Self = Self(1 << 9);
    /// The columns of a prepared statement have changed.
    pub const METADATA_CHANGED: Self = Self(1 << 10);
    /// The result holds the output parameters of a procedure.
    pub const OUTPUT_PARAMETERS: Self = Self(1 << 12);
    /// The open transaction only reads.
    pub const IN_READ_ONLY_TRANSACTION: Self = Self(1 << 13);
    /// State of the session has changed. In an OK packet trackers may say which; an EOF packet has none.
    pub const SESSION_CHANGED: Self = Self(1 << 14);
    /// `sql_mode` has ANSI_QUOTES. Only MariaDB says so.
    pub const ANSI_QUOTES: Self = Self(1 << 15);

    /// Has it all of these flags?
    #[inline]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }
}
