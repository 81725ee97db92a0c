//! Routes that ask one server, or none.

use proxima_wire::message::Outcome;

use super::{
    Route,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::Node,
    form::{Choice, Form, ServerAddress, Shape, Text, Word},
    reading::{Kind, Reading},
    section::section,
};

/// Routes without a child.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf {
    /// One member of the pool by its hash.
    Pool(String),
    /// One server: `host:port`, or `pool/name`.
    Member(String),
    /// The store in this process.
    Embedded,
    /// The answer of an empty cache.
    Null,
    /// mcrouter's DevNullRoute: the same as null, and counted.
    Discard,
    /// The answer to what is over a limit: that of an empty cache, where a client may be told so.
    OverLimit,
    /// An error.
    Error(ErrorReply),
}

const POOL_NAME: &str = "pool";
const MEMBER_NAME: &str = "member";
const EMBEDDED_NAME: &str = "embedded";
const NULL_NAME: &str = "null";
const ERROR_NAME: &str = "error";

impl Leaf {
    /// The name of the route.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Pool(_) => POOL_NAME,
            Self::Member(_) => MEMBER_NAME,
            Self::Embedded => EMBEDDED_NAME,
            Self::Null => NULL_NAME,
            Self::Discard => "discard",
            Self::OverLimit => "over_limit",
            Self::Error(_) => ERROR_NAME,
        }
    }
}

pub(super) const POOL: Handle = handle! {
    /// One server of the pool, chosen by the pool's `hash`. Where a route is expected, the pool's name alone
    /// means this.
    POOL_NAME, PoolRef => |name| Route::Leaf(Leaf::Pool(name))
};

pub(super) const MEMBER: Handle = handle! {
    /// One server: `host:port`, or `pool/name` for one of a pool.
    MEMBER_NAME, MemberRef => |name| Route::Leaf(Leaf::Member(name))
};

pub(super) const EMBEDDED: Handle = handle! {
    /// The store in this process.
    EMBEDDED_NAME => Route::Leaf(Leaf::Embedded)
};

pub(super) const NULL: Handle = handle! {
    /// Answers at once as an empty cache would, and stores nothing. For Redis that is, of each command, the
    /// reply of an empty server: a write is answered as if it had been executed, a command that blocks as if
    /// its time were over, and EXEC of a transaction that has come in one piece by the replies to its
    /// commands. What only a server can say (`SCRIPT LOAD`, `TIME`) or keep (`WATCH`, a transaction step by
    /// step) is refused.
    NULL_NAME => Route::Leaf(Leaf::Null)
};

/// The name of a pool.
#[derive(Debug)]
struct PoolRef;

impl Form for PoolRef {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "name of a pool",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        match node.scalar() {
            Some(name) if !node.is_null() => {
                cx.mention(node.at, Kind::Pool, name);
                Ok(name.to_owned())
            }
            _ => Err(cx.expected(node, "the name of a pool")),
        }
    }
}

/// One server: an address, or `pool/name`.
#[derive(Debug)]
struct MemberRef;

impl Form for MemberRef {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "address, or `pool/name`",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        match node.scalar() {
            Some(name) if name.contains('/') && !name.starts_with("unix:") => {
                cx.mention(node.at, Kind::Member, name);
                Ok(name.to_owned())
            }
            _ => ServerAddress::read(node, cx),
        }
    }
}

/// An error that is answered without asking a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorReply {
    /// The kind of the error.
    pub outcome: Outcome,
    /// Its text.
    pub text: String,
}

/// An error of the proxy's own.
impl<T: Into<String>> From<T> for ErrorReply {
    fn from(text: T) -> Self {
        Self {
            outcome: Outcome::LocalError,
            text: text.into(),
        }
    }
}

section! {
    /// An error. The text alone is enough.
    #[short(text)]
    struct ErrorReplyKeys {
        /// The text of the error.
        text: ErrorText,
        /// The kind of error, by which other routes know it.
        result: Word<Outcome> = Outcome::LocalError,
    }
}

pub(super) const ERROR: Handle = handle! {
    /// Answers an error with this text.
    ERROR_NAME, ErrorReplyKeys => |keys: ErrorReplyKeys| Route::Leaf(Leaf::Error(ErrorReply {
        outcome: keys.result,
        text: keys.text,
    }))
};

/// A text that fits into one line of a reply.
#[derive(Debug)]
struct ErrorText;

impl Form for ErrorText {
    type Value = String;

    fn shape() -> Shape {
        Shape::Text {
            what: "text",
            pattern: None,
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<String, Diagnostic> {
        let text = Text::read(node, cx)?;
        match text.len() > 1024 || text.chars().any(char::is_control) {
            true => Err(cx.refuse(node.at, "the text is not one line of at most 1024 bytes")),
            false => Ok(text),
        }
    }
}

impl Choice for Outcome {
    const WHAT: &'static str = "an error";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("timeout", Self::Timeout, "no reply in time"),
        ("connect_timeout", Self::ConnectTimeout, "no connection in time"),
        (
            "connect_error",
            Self::ConnectError,
            "the connection could not be made, or broke",
        ),
        (
            "ejected",
            Self::Ejected,
            "the server is ejected and was not asked",
        ),
        (
            "busy",
            Self::Busy,
            "the server asked to be left alone for a while",
        ),
        ("shutdown", Self::Shutdown, "the server is shutting down"),
        ("try_again", Self::TryAgain, "the server asked to try again"),
        ("deadline", Self::Deadline, "the request was too old to be sent"),
        ("overloaded", Self::Overloaded, "too much is waiting already"),
        ("remote_error", Self::RemoteError, "the server answered an error"),
        ("local_error", Self::LocalError, "the proxy could not do it"),
        ("client_error", Self::ClientError, "the request was wrong"),
    ];
}
