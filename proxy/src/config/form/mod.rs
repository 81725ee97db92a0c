//! What may stand in one place of a configuration: how it is read, what it is when absent, how it is described.
//!
//! A form is a type without values: `timeout: PositiveTime = POOL_TIMEOUT` in a section's table is all there is to say
//! about a key; the reader, the JSON Schema and the reference page follow from it.

mod address;
mod collection;
mod number;
mod permission;
mod shape;
mod size;
mod text;
mod time;
mod word;

pub(super) use address::{HostName, ListenAddress, ServerAddress};
pub(super) use collection::{Apart, ByName, List, Named, Optional};
pub(super) use number::{Amount, Count, Seconds, Share, Weight};
pub(super) use permission::{Mode, Owner};
pub(super) use shape::{Key, Section, Shape};
pub(super) use size::Size;
pub(super) use text::{PathText, Tag, Text};
pub(super) use time::{PositiveTime, Time};
pub(super) use word::{Choice, Flag, Word};

pub(crate) use address::check as check_address;
pub use address::{BadAddress, BadListenAddress, listen_address, listen_socket};

use super::{Diagnostic, document::Node, reading::Reading};

/// What may stand in one place.
pub(super) trait Form {
    /// What is read there.
    type Value;

    /// For the schema and the reference.
    fn shape() -> Shape;

    /// Reads what stands there.
    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic>;

    /// What it means that nothing stands there; none = something must.
    fn absent() -> Option<Self::Value> {
        None
    }

    /// What becomes of a mistake here. It is one of the whole that this is a part of, unless the rest of that
    /// can be read well without it: then it is noted, and something that claims nothing stands here.
    fn mistaken(mistake: Diagnostic, _cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        Err(mistake)
    }

    /// The value as one would write it, for defaults in the reference.
    fn show(_value: &Self::Value) -> Option<String> {
        None
    }
}
