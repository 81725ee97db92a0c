//! The path of a contender's program, from the command line.

use std::{path::PathBuf, str::FromStr};

use clap::ValueEnum;

use super::Contender;

/// A contender's binary, as in `mcrouter=/opt/mcrouter/bin/mcrouter`.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    pub(super) contender: Contender,
    pub(super) path: PathBuf,
}

/// The text names no binary; the caller of the program has to correct it.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BadBinary {
    #[error("expected NAME=PATH")]
    NoPath,
    #[error("{0}")]
    Contender(String),
}

impl FromStr for Binary {
    type Err = BadBinary;

    fn from_str(text: &str) -> Result<Self, BadBinary> {
        let (name, path) = text.split_once('=').ok_or(BadBinary::NoPath)?;
        Ok(Self {
            contender: Contender::from_str(name, false).map_err(BadBinary::Contender)?,
            path: path.into(),
        })
    }
}
