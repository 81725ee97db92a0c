//! The reason why a handshake failed.

use std::{fmt, io};

use rustls::Error;

/// The reason why a handshake failed. Metrics count them by these names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// The other end does not speak TLS.
    Plain,
    /// The other end gave up, and said so.
    Alert,
    /// The other end's certificate is missing, or proves nothing here.
    Certificate,
    /// The two ends have no version or cipher in common.
    Incompatible,
    /// The other end breaks the rules.
    Malformed,
    /// The other end did not go on in time.
    Late,
    /// The other end closed the connection.
    Cut,
    /// Others wanted to begin, and this one had waited the longest for the other end.
    Displaced,
}

impl Failure {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 8] = [
        Self::Plain,
        Self::Alert,
        Self::Certificate,
        Self::Incompatible,
        Self::Malformed,
        Self::Late,
        Self::Cut,
        Self::Displaced,
    ];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Alert => "alert",
            Self::Certificate => "certificate",
            Self::Incompatible => "incompatible",
            Self::Malformed => "malformed",
            Self::Late => "timeout",
            Self::Cut => "cut",
            Self::Displaced => "displaced",
        }
    }

    /// The reason why a transform could not go on.
    pub fn of(error: &io::Error) -> Self {
        let broken = error.get_ref().and_then(|error| error.downcast_ref::<Broken>());
        broken.map_or(Self::Malformed, |broken| broken.failure)
    }

    pub(super) fn error(self, text: impl ToString) -> io::Error {
        let text = text.to_string();
        io::Error::new(io::ErrorKind::InvalidData, Broken { failure: self, text })
    }
}

/// The error of a transform, for those who are told why a connection has ended. The other end is at fault, or
/// the certificates of the two ends do not go together.
#[derive(Debug)]
struct Broken {
    failure: Failure,
    text: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TLS: {}", self.text)
    }
}

impl std::error::Error for Broken {}

/// The library's reason.
pub(super) fn broken(error: &Error) -> io::Error {
    let failure = match error {
        Error::AlertReceived(_) => Failure::Alert,
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented => Failure::Certificate,
        Error::PeerIncompatible(_) | Error::NoApplicationProtocol => Failure::Incompatible,
        _ => Failure::Malformed,
    };
    failure.error(error)
}
