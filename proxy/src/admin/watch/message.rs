//! The messages of the stream, as server-sent events.

use hyper::body::Bytes;
use serde::Serialize;
use serde_json::json;

use crate::event_log::Event;

/// The whole document.
pub(super) fn state(document: &impl Serialize) -> Bytes {
    message("", "state", document)
}

/// What changes the document to the next one.
pub(super) fn change(patch: &impl Serialize) -> Bytes {
    message("", "change", patch)
}

/// An event, with its number: whoever comes again tells it.
pub(super) fn log(event: &Event) -> Bytes {
    message(&format!("id: {}\n", event.seq), "log", event)
}

/// The last message, and why it is that.
pub(super) fn end(why: &str) -> Bytes {
    message("", "end", &json!({ "why": why }))
}

fn message(id: &str, name: &str, data: &impl Serialize) -> Bytes {
    let text = serde_json::to_string(data).unwrap_or_default();
    format!("{id}event: {name}\ndata: {text}\n\n").into()
}
