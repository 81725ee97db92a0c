//! The capabilities that both ends of a connection have agreed on.

/// Capabilities as a set of bits: the 32 of MySQL, and above them MariaDB's own.
///
/// Capabilities without a name here are not supported: compression, query attributes, optional metadata, and
/// MariaDB's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Capabilities(pub u64);

impl Capabilities {
    /// `CLIENT_LONG_PASSWORD` of MySQL. A server that does **not** set it has MariaDB's own capabilities.
    pub const MYSQL: Self = Self(1);
    /// The OK packet counts found rows, and not changed ones.
    pub const FOUND_ROWS: Self = Self(1 << 1);
    /// Column definitions have all flags.
    pub const LONG_FLAG: Self = Self(1 << 2);
    /// A login may name a database.
    pub const CONNECT_WITH_DB: Self = Self(1 << 3);
    /// Packets may be compressed with zlib.
    pub const COMPRESS: Self = Self(1 << 5);
    /// The client sends a file when the server asks for it.
    pub const LOCAL_FILES: Self = Self(1 << 7);
    /// Blanks may stand between the name of a function and its parenthesis.
    pub const IGNORE_SPACE: Self = Self(1 << 8);
    /// Protocol 4.1, the only one that is served.
    pub const PROTOCOL_41: Self = Self(1 << 9);
    /// The server uses `interactive_timeout`.
    pub const INTERACTIVE: Self = Self(1 << 10);
    /// The client goes on with TLS.
    pub const TLS: Self = Self(1 << 11);
    /// The server tells whether a transaction is open.
    pub const TRANSACTIONS: Self = Self(1 << 13);
    /// The answer to a salt stands behind one byte of length.
    pub const SECURE_CONNECTION: Self = Self(1 << 15);
    /// A text may have several statements.
    pub const MULTI_STATEMENTS: Self = Self(1 << 16);
    /// A text may have several results.
    pub const MULTI_RESULTS: Self = Self(1 << 17);
    /// A prepared statement may have several results.
    pub const PS_MULTI_RESULTS: Self = Self(1 << 18);
    /// A login names its method.
    pub const PLUGIN_AUTH: Self = Self(1 << 19);
    /// A login tells attributes of the client.
    pub const CONNECT_ATTRIBUTES: Self = Self(1 << 20);
    /// The answer to a salt stands behind a length of one to nine bytes.
    pub const LONG_AUTH: Self = Self(1 << 21);
    /// An expired password may be changed.
    pub const EXPIRED_PASSWORDS: Self = Self(1 << 22);
    /// OK packets tell what has changed of the session.
    pub const SESSION_TRACK: Self = Self(1 << 23);
    /// OK packets take the place of EOF packets.
    pub const DEPRECATE_EOF: Self = Self(1 << 24);
    /// A result may come without the definitions of its columns.
    pub const OPTIONAL_METADATA: Self = Self(1 << 25);
    /// Packets may be compressed with zstd.
    pub const ZSTD: Self = Self(1 << 26);
    /// A statement begins with attributes.
    pub const QUERY_ATTRIBUTES: Self = Self(1 << 27);

    /// Those of either set.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Those of both sets.
    #[must_use]
    pub const fn both(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Those that the other set lacks.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Has it all of the other set?
    #[inline]
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// The lower 32 bits, which MySQL knows.
    pub(super) const fn low(self) -> u32 {
        self.0 as u32
    }

    /// MariaDB's own. They are sent only where bit 0 is not set.
    pub(super) const fn high(self) -> u32 {
        match self.has(Self::MYSQL) {
            true => 0,
            false => (self.0 >> 32) as u32,
        }
    }

    /// The set of these bits, the upper of which count only where bit 0 is not set.
    pub(super) const fn of(low: u32, high: u32) -> Self {
        let low = Self(low as u64);
        match low.has(Self::MYSQL) {
            true => low,
            false => Self(low.0 | (high as u64) << 32),
        }
    }
}
