//! Reasons for which a command line is refused.

use crate::{
    config::{BadAddress, BadListenAddress, ConfigError, Diagnostic},
    reactor::UnknownIo,
};

/// The command line is refused, and the program ends. The operator has to correct it, or the configuration;
/// [`StartError::retry_may_help`] tells where the same command line may be served later.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The command line itself. It is never served.
    #[error(transparent)]
    Options(#[from] OptionError),
    /// The configuration that it names. A later start may find a good one.
    #[error(transparent)]
    Config(ConfigError),
    /// The configuration, where only a check of it was asked for. The answer is final.
    #[error(transparent)]
    Invalid(ConfigError),
}

impl StartError {
    /// Whether the same command line may be served later.
    pub fn retry_may_help(&self) -> bool {
        matches!(self, Self::Config(_))
    }

    /// mcrouter's exit code: 2 where a later start may work, otherwise 3.
    pub fn exit_code(&self) -> u8 {
        if self.retry_may_help() { 2 } else { 3 }
    }
}

/// An option that is refused.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionError {
    /// The option would change what clients get.
    #[error("option `--{option}` is not served: {why}")]
    NotServed { option: &'static str, why: &'static str },
    #[error("option `--{0}` needs a value")]
    NoValue(&'static str),
    /// The value has the wrong type.
    #[error("option `--{option}` takes {takes}, not `{found}`")]
    BadValue {
        option: &'static str,
        takes: &'static str,
        found: String,
    },
    #[error("option `--server-timeout` takes a number above 0")]
    NoTimeout,
    #[error("the number of proxy threads is from 1 to 1024")]
    Threads,
    #[error("option `--core-multiplier` takes a number, not `{0}`")]
    Multiplier(String),
    #[error("invalid ports")]
    Ports,
    #[error("option `--ssl-port` needs `--server-pem-cert-path` and `--server-pem-key-path`")]
    NoCertificate,
    #[error("option `--ssl-require-peer-certs` needs `--server-pem-ca-path`")]
    NoAuthority,
    #[error("option `--listen-sock-fd` takes the number of an open socket, not {0}")]
    Descriptor(i64),
    #[error("--unix-domain-sock and --port cannot both be given")]
    PortAndSocket,
    #[error("option `--unix-domain-sock`: {0}")]
    Socket(BadAddress),
    #[error("option `--listen-addresses`: `{0}` is no address")]
    Host(String),
    #[error("option `--admin`: {0}")]
    Admin(BadListenAddress),
    #[error("option `--io`: {0}")]
    Io(UnknownIo),
    /// The file of options that the command line names cannot be read, or is refused.
    #[error("{file}:{diagnostic}")]
    Flavor { file: String, diagnostic: Diagnostic },
    #[error(
        "--fleet beside --keep-writing or --keep-writing-state: the fleet says which copies missed writes; leave these out"
    )]
    FleetAndKeepWriting,
    #[error("no configuration: give --config=file:PATH")]
    NoConfig,
}
