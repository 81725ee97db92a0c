//! mcrouter's configuration language: JSON with macros, constants, variables, built-in functions and imports
//! becomes JSON without them.
//!
//! ```text
//!  text ─▶ json ─▶ Node ─▶ item ─┐                       ┌─▶ item ─▶ Node ─▶ tree
//!                                └─▶ expand ─▶ call ─────┘
//!                  definition ─▶ macros, constants        built_in: one file for each family
//!                  sources: imported files                text: how calls are written in strings
//! ```
//!
//! Every resource that a hostile text could exhaust is bounded: how deep values and calls nest
//! (`DEPTH_LIMIT`), how large a value may grow, how much work an expansion may make ([`WORK`]), and how much
//! may be imported.

mod built_in;
mod call;
mod definition;
mod expand;
mod item;
mod meter;
mod scope;
mod sources;
mod stack;
mod text;

#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf};

use self::{expand::Expander, meter::Meter, sources::Sources};
use super::{
    dump::{Origin, Texts},
    json,
};
use crate::config::{Diagnostic, document::Node, reading::Reading};

pub(super) use self::item::Constant;

/// The values that the expansion of one configuration may touch.
const WORK: usize = 5_000_000;

/// The constants that are there before a configuration defines any.
pub(super) type Constants = BTreeMap<String, Constant>;

/// Expands the texts of one configuration: its own, and those of the pools that have files.
#[derive(Debug)]
pub(super) struct Preprocessor<'a> {
    constants: &'a Constants,
    sources: Sources<'a>,
    meter: Meter,
}

impl<'a> Preprocessor<'a> {
    /// `folder`: where imported files are looked for. `None`: in the working directory.
    pub(super) fn new(constants: &'a Constants, origin: Origin<'a>, folder: Option<PathBuf>) -> Self {
        Self {
            constants,
            sources: Sources::new(origin, folder),
            meter: Meter::new(WORK),
        }
    }

    /// Reads a text, and expands what it says.
    pub(super) fn expand(&mut self, text: &str, cx: &mut Reading) -> Result<Node, Diagnostic> {
        let document = json::parse(text, cx)?;
        let (constants, sources, meter) = (self.constants, &mut self.sources, &mut self.meter);
        stack::with_room(move || Expander::new(constants, sources, meter).document(document))
    }

    /// Reads and expands the file at `path`. Its macros are its own. Diagnostics have places in that file.
    pub(super) fn file(&mut self, path: &str) -> Result<Node, Diagnostic> {
        let text = self.sources.named(path)?;
        self.expand(&text, &mut Reading::default())
    }

    /// The files that were read, with their texts. A file that may be missing, and is, has an empty text.
    pub(super) fn into_files(self) -> Texts {
        self.sources.into_files()
    }
}
