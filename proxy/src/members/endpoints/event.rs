//! One line of a watch.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    BadAnswer,
    slice::{Metadata, Slice, SliceObject},
};

/// The code of an error that says that a version is no longer kept.
const GONE: u16 = 410;

/// What a watch tells.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// The slice with this name is this one now.
    Is(String, Slice),
    /// The slice with this name is gone.
    Gone(String),
    /// All is told up to the version.
    Bookmark,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Marked {
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Status {
    code: u16,
    message: String,
}

impl Event {
    /// Reads a line of a watch of this Service's slices. Returns the event with its version.
    ///
    /// # Errors
    /// The line is none of such a watch, or ends it.
    pub(super) fn read(line: &[u8], service: &str) -> Result<(Self, String), BadAnswer> {
        let bad = |error: serde_json::Error| BadAnswer::NoSlices(error.to_string());
        let line: Line<'_> = serde_json::from_slice(line).map_err(bad)?;
        let object = line.object.get();
        if line.kind == "ERROR" {
            let status: Status = serde_json::from_str(object).map_err(bad)?;
            return Err(match status.code {
                GONE => BadAnswer::Gone(status.message),
                _ => BadAnswer::Ended(status.message),
            });
        }
        if line.kind == "BOOKMARK" {
            let marked: Marked = serde_json::from_str(object).map_err(bad)?;
            return Ok((Self::Bookmark, marked.metadata.resource_version));
        }
        let object: SliceObject = serde_json::from_str(object).map_err(bad)?;
        let (name, version) = (
            object.metadata.name.clone(),
            object.metadata.resource_version.clone(),
        );
        let slice = Slice::read(object, service)?;
        match line.kind {
            "ADDED" | "MODIFIED" => Ok((Self::Is(name, slice), version)),
            "DELETED" => Ok((Self::Gone(name), version)),
            kind => Err(BadAnswer::NoSlices(format!("an event `{kind}`"))),
        }
    }
}
