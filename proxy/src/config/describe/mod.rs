//! What the configuration format is, for editors and for people: both from the forms that the reader uses.

mod json_schema;
mod reference;

pub use json_schema::{json_schema, json_schema_text};
pub use reference::{options, routes};
