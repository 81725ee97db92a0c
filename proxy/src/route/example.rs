//! The request that `explain` walks with, made of what an operator asks.

use proxima_wire::message::{Parsed, Request};

use super::tree::Tree;
use crate::protocol::{Declared, Protocol, Session, Texts};

/// A request cannot be explained; the operator has to ask otherwise.
#[derive(Debug, thiserror::Error)]
pub enum ExplainError {
    /// The listener's protocol has no such command, or it takes no key.
    #[error("`{command}` is no command of {protocol}")]
    NoCommand {
        /// The command as the operator wrote it, escaped.
        command: String,
        /// The name of the listener's protocol.
        protocol: &'static str,
    },
    /// No text says what a request of the listener's protocol does.
    #[error("{0} has no statements")]
    NoStatements(&'static str),
    /// The protocol cannot parse the request, which is shown here, escaped.
    #[error("`{0}` is no request")]
    NoRequest(String),
    /// The text, shown here escaped, is more than one request, or has more than one key.
    #[error("`{0}` is not one request for one key")]
    NotOne(String),
    /// The configuration has no listener of this number.
    #[error("there is no such listener")]
    NoListener,
}

/// What is explained.
#[derive(Clone, Copy, Debug)]
pub enum Example<'a> {
    /// The shortest request of a command for a key.
    Key {
        /// The command.
        command: &'a str,
        /// The key.
        key: &'a [u8],
    },
    /// A request with this text, by a client that has asked for nothing before.
    Text {
        /// The text.
        text: &'a [u8],
        /// The user as whom the client has logged in; empty: any.
        user: &'a [u8],
        /// The schema that it uses; empty: none.
        schema: &'a [u8],
    },
}

/// A request to walk with.
pub(super) struct ExampleRequest {
    /// What to call it.
    pub(super) title: String,
    /// The request.
    pub(super) request: Vec<u8>,
    /// The session of the client that asks.
    pub(super) session: Session,
    /// What is known of it before it walks.
    pub(super) remarks: Vec<String>,
}

impl Example<'_> {
    /// Makes the request.
    pub(super) fn make(
        self,
        tree: &Tree,
        listener: usize,
        protocol: &dyn Protocol,
    ) -> Result<ExampleRequest, ExplainError> {
        match self {
            Self::Key { command, key } => of_key(protocol, command, key),
            Self::Text { text, user, schema } => {
                let access = tree.access(listener);
                let session_of = |texts: &dyn Texts| texts.session(&access, user, schema);
                of_text(tree.declared(listener), protocol, text, session_of)
            }
        }
    }
}

/// The shortest request of this command for this key.
fn of_key(protocol: &dyn Protocol, command: &str, key: &[u8]) -> Result<ExampleRequest, ExplainError> {
    let number = protocol.command(command);
    let request = number.and_then(|number| protocol.example(number, key));
    let request = request.ok_or_else(|| ExplainError::NoCommand {
        command: command.escape_debug().to_string(),
        protocol: protocol.name(),
    })?;
    let shown = || request.trim_ascii_end().escape_ascii().to_string();
    let Parsed::Head(head) = protocol.head(&request) else {
        return Err(ExplainError::NoRequest(shown()));
    };
    if head.len() != request.len() as u64 || !head.more_keys.is_empty() {
        return Err(ExplainError::NotOne(shown()));
    }
    let mut scratch = [0; 250];
    let key = protocol.key(&head, &request, &mut scratch);
    Ok(ExampleRequest {
        title: format!("{command} {}", key.escape_ascii()),
        request,
        session: Session::NEW,
        remarks: Vec::new(),
    })
}

/// A request with this text, by a client with such a session.
fn of_text(
    declared: Declared<'_>,
    protocol: &dyn Protocol,
    text: &[u8],
    session_of: impl Fn(&dyn Texts) -> Session,
) -> Result<ExampleRequest, ExplainError> {
    let none = || ExplainError::NoStatements(protocol.name());
    let texts = protocol.texts().ok_or_else(none)?;
    let (mut session, mut request) = (session_of(texts), Vec::new());
    texts.append(text, &mut request);
    let head = head(declared, protocol, &session, &request).ok_or_else(none)?;
    let remarks = texts.remarks(&mut session, &head, &request);
    Ok(ExampleRequest {
        title: "statement".into(),
        request,
        // What the statement would leave in its session changes nothing on its own way.
        session: session_of(texts),
        remarks,
    })
}

/// The head of a request, read as the client's session makes it. A large one is passed on as it comes,
/// unread.
pub(super) fn head(
    declared: Declared<'_>,
    protocol: &dyn Protocol,
    session: &Session,
    message: &[u8],
) -> Option<Request> {
    let Parsed::Head(head) = protocol.head(message) else {
        return None;
    };
    let resolved = match head.body {
        0 => protocol.resolve(session, declared, &head, message),
        _ => None,
    };
    Some(resolved.unwrap_or(head))
}
