//! Types: conversions and tests.

use crate::{
    config::Diagnostic,
    frontdoor::mcrouter::preprocess::{call::MacroResult, item::Json, meter::Meter},
};

fn cast(value: &Json, to: &str, made: Option<Json>) -> MacroResult {
    let shown = || match value {
        Json::Text(text) => format!(" '{}'", crate::config::document::shortened(text)),
        _ => String::new(),
    };
    made.ok_or_else(|| Diagnostic::whole(format!("Can not cast {}{} to {to}", value.kind(), shown())))
}

pub(super) fn int(value: &Json, _: &Meter) -> MacroResult {
    let made = match value {
        Json::Int(number) => Some(*number),
        Json::Bool(flag) => Some((*flag).into()),
        // A number that does not fit in, or has a fraction, would become another one.
        Json::Double(number) => Some(*number as i64).filter(|whole| *whole as f64 == *number),
        Json::Text(text) => text.trim().parse().ok(),
        _ => None,
    };
    cast(value, "int", made.map(Json::Int))
}

pub(super) fn double(value: &Json, _: &Meter) -> MacroResult {
    let made = match value {
        Json::Int(number) => Some(*number as f64),
        Json::Bool(flag) => Some((*flag).into()),
        Json::Double(number) => Some(*number),
        Json::Text(text) => text.trim().parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    };
    cast(value, "double", made.map(Json::Double))
}

pub(super) fn string(value: &Json, _: &Meter) -> MacroResult {
    let made = match value {
        Json::Int(number) => Some(number.to_string()),
        Json::Bool(flag) => Some(u8::from(*flag).to_string()),
        Json::Double(number) => Some(number.to_string()),
        Json::Text(text) => return Ok(Json::Text(text.clone())),
        _ => None,
    };
    cast(value, "string", made.map(Json::text))
}

pub(super) fn boolean(value: &Json, _: &Meter) -> MacroResult {
    let made = match value {
        Json::Bool(flag) => Some(*flag),
        Json::Int(number) => Some(*number != 0),
        Json::Double(number) => Some(*number != 0.0),
        Json::Text(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" | "t" | "yes" | "y" | "on" | "1" => Some(true),
            "false" | "f" | "no" | "n" | "off" | "0" => Some(false),
            _ => None,
        },
        _ => None,
    };
    cast(value, "boolean", made.map(Json::Bool))
}

pub(super) fn is_array(value: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Bool(matches!(value, Json::List(_))))
}

pub(super) fn is_bool(value: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Bool(matches!(value, Json::Bool(_))))
}

pub(super) fn is_int(value: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Bool(matches!(value, Json::Int(_))))
}

pub(super) fn is_double(value: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Bool(matches!(value, Json::Double(_))))
}

pub(super) fn is_object(value: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Bool(matches!(value, Json::Map(_))))
}

pub(super) fn is_string(value: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Bool(matches!(value, Json::Text(_))))
}
