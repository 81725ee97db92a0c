//! Values of the document that a proxy sends, as people read them. What is missing is shown as `-`: a proxy
//! leaves out what it does not know, and an older one what it has not learned yet.

use serde_json::Value;

use crate::cli::{
    plain::plain,
    table::{count, size, time},
};

/// What stands for a value that is missing.
pub(super) const NOTHING: &str = "-";

/// A text that is safe for a terminal; empty if it is missing.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => plain(text),
        other => plain(&other.to_string()),
    }
}

/// The members of an object, in the order of their names.
pub(super) fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// The elements of an array.
pub(super) fn elements(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(super) fn number(value: &Value, show: impl Fn(f64) -> String) -> String {
    value.as_f64().map_or_else(|| NOTHING.to_owned(), show)
}

pub(super) fn counted(value: &Value) -> String {
    number(value, count)
}

pub(super) fn bytes(value: &Value) -> String {
    number(value, |bytes| size(bytes as u64))
}

pub(super) fn micros(value: &Value) -> String {
    number(value, |us| time(us / 1e6))
}

/// A number of those that there may be at most.
pub(super) fn of_most(value: &Value, most: &Value, show: impl Fn(&Value) -> String) -> String {
    match most.is_null() {
        true => show(value),
        false => format!("{} of {}", show(value), show(most)),
    }
}

/// A time of day in UTC.
pub(super) fn time_of_day(ms: &Value) -> String {
    let moment = ms.as_u64().map(crate::cli::table::moment);
    let time = moment.as_ref().and_then(|moment| moment.get(11..19));
    time.unwrap_or(NOTHING).to_owned()
}
