//! Descriptions of the configuration format, for editors and for people. Both follow from the forms that the
//! reader uses.

mod json_schema;
mod reference;

pub use json_schema::{json_schema, json_schema_text};
pub use reference::{options, routes};
