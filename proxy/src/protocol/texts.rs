//! Explanations of requests that are texts.

use proxima_wire::message::Request;

use super::{Access, Session};

/// The part of a protocol that `explain` needs if requests are texts, such as statements.
pub trait Texts {
    /// The session of a client that has logged in at a listener of this protocol with this access as this
    /// user, with this schema (empty without one), and has asked for nothing yet.
    fn session(&self, access: &Access, user: &[u8], schema: &[u8]) -> Session;

    /// Appends the request with this text.
    fn append(&self, text: &[u8], out: &mut Vec<u8>);

    /// The text of this request without its values, for operators. The session is that of its client. `None`: it
    /// has no text, or none that can be read.
    fn shown(&self, session: &Session, request: &Request, message: &[u8]) -> Option<String>;

    /// The effects of this request, for operators, one fact each. The session is that of its client. No
    /// remark has any part of the text.
    fn remarks(&self, session: &mut Session, request: &Request, message: &[u8]) -> Vec<String>;
}
