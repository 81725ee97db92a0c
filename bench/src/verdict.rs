//! A client's judgement of a reply.

/// A complete reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The value that belongs to the key, every byte of it.
    Hit,
    /// No value.
    Miss,
    /// A set was stored.
    Stored,
    /// The server or the proxy said no, in these words.
    Refused(String),
    /// It is not the reply to the request, and its end is not known either.
    Wrong(String),
}

impl Verdict {
    /// A wrong reply, which begins with `bytes`.
    pub(crate) fn wrong(what: &str, bytes: &[u8]) -> Self {
        Self::Wrong(format!(
            "{what}: got {}",
            bytes[..bytes.len().min(256)].escape_ascii()
        ))
    }
}
