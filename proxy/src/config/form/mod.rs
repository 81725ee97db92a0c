//! The values that may stand in a configuration: how they are read, what their absence means, how they are
//! described.
//!
//! A form is a type without values: `timeout: PositiveTime = POOL_TIMEOUT` in a section's table is all there
//! is to say about a key; the reader, the JSON Schema and the reference page follow from it.

mod address;
mod collection;
mod number;
mod shape;
mod size;
mod text;
mod time;
mod word;

pub(super) use address::{HostName, ListenAddress, ServerAddress, TcpAddress, by_tcp};
pub(super) use collection::{Apart, ByName, List, Named, Optional};
pub(super) use number::{Amount, Count, Seconds, Share, Weight};
pub(super) use shape::{Key, Section, Shape};
pub(super) use size::Size;
pub(super) use text::{Character, PathText, Tag, Text};
pub(super) use time::{PositiveTime, Time};
pub(super) use word::{Choice, Flag, Word};

pub(crate) use address::check as check_address;
pub use address::{BadAddress, BadListenAddress, listen_address, listen_socket};
pub(crate) use time::parse as parse_duration;

use super::{Diagnostic, document::Node, reading::Reading};

/// A kind of value.
pub(super) trait Form {
    /// The type of the value.
    type Value;

    /// Its shape, for the schema and the reference.
    fn shape() -> Shape;

    /// Reads a value.
    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic>;

    /// The value where nothing is written. `None`: something must be written.
    fn absent() -> Option<Self::Value> {
        None
    }

    /// Handles a mistake in this value. By default the mistake is also one of the whole of which this value
    /// is a part. A form whose neighbours can be read without it records the mistake and returns a value that
    /// claims nothing.
    fn mistaken(mistake: Diagnostic, _cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        Err(mistake)
    }

    /// The value as one would write it, for defaults in the reference.
    fn show(_value: &Self::Value) -> Option<String> {
        None
    }
}
