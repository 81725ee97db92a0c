//! Reasons for which a command line is refused.

use super::{help::usage, options::Label};
use crate::{config::ConfigError, reactor::UnknownIo};

/// The command line is refused, and the program ends. The operator has to correct it, or the configuration.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StartError {
    /// The command line itself.
    #[error("nutcracker: {0}\n{usage}", usage = usage())]
    Options(#[from] OptionError),
    /// The configuration that it names. twemproxy says so twice where only a test was asked for, unless there
    /// is no such file, and scripts may count.
    #[error("{error}\n{}", said(file, *times))]
    Config {
        /// The mistakes.
        error: ConfigError,
        /// The file as it was named.
        file: String,
        /// How often twemproxy says it.
        times: usize,
    },
}

/// twemproxy's words about a bad file.
fn said(file: &str, times: usize) -> String {
    format!("nutcracker: configuration file '{file}' syntax is invalid\n").repeat(times)
}

/// An option that is refused.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum OptionError {
    /// There is no such option. A long one has no letter.
    #[error("invalid option -- '{0}'")]
    Unknown(char),
    #[error("option {0} requires {1}")]
    NoValue(Label, &'static str),
    #[error("option -s value {0} is not a valid port")]
    Port(i32),
    #[error("option -a value {0} is not an address of this host")]
    StatsAddress(String),
    #[error("option -m requires a non-zero number")]
    NoSize,
    #[error("mbuf chunk size must be between 512 and 16777216 bytes")]
    MbufSize,
    #[error("option {option} requires {what}, and `{value}` is none")]
    Value {
        option: Label,
        what: &'static str,
        value: String,
    },
    #[error("option --{0} says nothing without --health")]
    WithoutHealth(&'static str),
    #[error("option --io: {0}")]
    Io(UnknownIo),
    #[error("option --workers requires a number from 1 to 1024")]
    Workers,
}
