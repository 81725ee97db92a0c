//! The class of a statement: its effect in one word.

/// The effect of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// It only reads, and every server that has the data answers alike.
    Read,
    /// It reads, and locks what it reads.
    LockingRead,
    /// It changes data, or may.
    Write,
    /// It changes tables, other objects, or accounts. It ends an open transaction.
    Ddl,
    /// It begins, ends or marks a transaction, or locks tables.
    Transaction,
    /// It changes the state of the connection, or asks for it: variables, locks by name, what the statement
    /// before has left.
    Session,
    /// It is about one server.
    Admin,
    /// Nothing is known. It may be anything.
    Unknown,
}

impl Class {
    /// All classes, with their words in tables and messages.
    pub const ALL: [(Self, &'static str); 8] = [
        (Self::Read, "read"),
        (Self::LockingRead, "locking-read"),
        (Self::Write, "write"),
        (Self::Ddl, "ddl"),
        (Self::Transaction, "transaction"),
        (Self::Session, "session"),
        (Self::Admin, "admin"),
        (Self::Unknown, "unknown"),
    ];

    /// Does it change nothing but locks and the state of the connection?
    pub const fn is_read(self) -> bool {
        matches!(self, Self::Read | Self::LockingRead | Self::Session)
    }

    /// The rank among the classes each of which may do what those before it do. `None` if the class stands
    /// outside of this order.
    const fn rank(self) -> Option<u8> {
        match self {
            Self::Read => Some(0),
            Self::LockingRead => Some(1),
            Self::Write => Some(2),
            Self::Unknown => Some(3),
            Self::Ddl | Self::Transaction | Self::Session | Self::Admin => None,
        }
    }

    /// This class of a statement in which something of the other class was found.
    pub(super) fn raised(self, other: Self) -> Self {
        match (self.rank(), other.rank()) {
            (Some(own), Some(others)) if others > own => other,
            // One word cannot say that a statement sets a variable and locks or writes.
            (None, Some(1..)) if self == Self::Session => Self::Unknown,
            _ => self,
        }
    }

    /// The class of a statement of this class and one of the other class behind it.
    fn then(self, other: Self) -> Self {
        match (self, other) {
            _ if self == other => self,
            (Self::Read, any) | (any, Self::Read) => any,
            (Self::Write, Self::LockingRead) | (Self::LockingRead, Self::Write) => Self::Write,
            _ => Self::Unknown,
        }
    }
}

/// The effect of the statements of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Their class; for several statements the class that covers all of them.
    pub class: Class,
    /// The result depends on what the server keeps for the connection: variables, the last generated id, the
    /// number of found rows.
    pub reads_session: bool,
    /// The server keeps something for the connection from now on that it may not report: user variables that
    /// a SELECT sets, locks by name, handlers, temporary tables.
    pub changes_session: bool,
    /// The text has several statements.
    pub is_several: bool,
    /// The text has no statement, only comments.
    pub(super) is_empty: bool,
}

impl Default for Statement {
    fn default() -> Self {
        Self::UNKNOWN
    }
}

impl Statement {
    /// A text of which nothing is known.
    pub const UNKNOWN: Self = Self::of(Class::Unknown);

    /// A text without a statement. Servers answer it with an error.
    pub(super) const EMPTY: Self = Self {
        is_empty: true,
        ..Self::UNKNOWN
    };

    /// A statement of this class that has nothing to do with the state of the connection.
    pub const fn of(class: Class) -> Self {
        Self {
            class,
            reads_session: false,
            changes_session: false,
            is_several: false,
            is_empty: false,
        }
    }

    /// Both, one behind the other.
    pub(super) fn then(self, other: Self) -> Self {
        match (self.is_empty, other.is_empty) {
            (true, _) => other,
            (_, true) => self,
            _ => Self {
                is_several: true,
                ..self.joined(self.class.then(other.class), other)
            },
        }
    }

    /// The possible effect of this statement, which was read with its comments executed, where some comments
    /// are not executed.
    pub(super) fn or_without_comments(self, skipped: Self) -> Self {
        if skipped.is_empty {
            return self;
        }
        let class = match (self.class, skipped.class) {
            (own, other) if own == other => own,
            (Class::Read, Class::Session) | (Class::Session, Class::Read) => Class::Session,
            (own, other) if own.rank().is_some() && other.rank().is_some() => own.raised(other),
            _ => Class::Unknown,
        };
        self.joined(class, skipped)
    }

    fn joined(self, class: Class, other: Self) -> Self {
        Self {
            class,
            reads_session: self.reads_session || other.reads_session,
            changes_session: self.changes_session || other.changes_session,
            is_several: self.is_several || other.is_several,
            is_empty: false,
        }
    }
}
