//! Lists, objects and texts as wholes.

use std::cmp::Ordering;

use crate::{
    config::{Diagnostic, Place},
    frontdoor::mcrouter::preprocess::{
        call::MacroResult,
        item::{Item, Json, ListBuilder, Map, MapBuilder, SIZE_LIMIT},
        meter::Meter,
    },
};

fn refused(problem: impl Into<String>) -> Diagnostic {
    Diagnostic::whole(problem)
}

fn object<'a>(name: &str, value: &'a Json) -> Result<&'a Map, Diagnostic> {
    match value {
        Json::Map(map) => Ok(map),
        _ => Err(refused(format!("{name}: dictionary is not object"))),
    }
}

pub(super) fn keys(dictionary: &Json, meter: &Meter) -> MacroResult {
    let map = object("Keys", dictionary)?;
    meter.charge(map.entries.len())?;
    let mut keys = ListBuilder::new();
    for (key, _) in &map.entries {
        keys.push(Item {
            at: key.at,
            value: Json::text(key.text.clone()),
        })?;
    }
    Ok(keys.done())
}

pub(super) fn values(dictionary: &Json, meter: &Meter) -> MacroResult {
    let map = object("Values", dictionary)?;
    meter.charge(map.entries.len())?;
    let mut values = ListBuilder::new();
    for (_, item) in &map.entries {
        values.push(item.clone())?;
    }
    Ok(values.done())
}

pub(super) fn size(dictionary: &Json, _: &Meter) -> MacroResult {
    let size = length(dictionary).ok_or_else(|| refused("size: dictionary is not object/array/string"))?;
    Ok(Json::Int(i64::try_from(size).unwrap_or(i64::MAX)))
}

pub(super) fn empty(dictionary: &Json, _: &Meter) -> MacroResult {
    let size = length(dictionary).ok_or_else(|| refused("empty: dictionary is not object/array/string"))?;
    Ok(Json::Bool(size == 0))
}

fn length(value: &Json) -> Option<usize> {
    match value {
        Json::Map(map) => Some(map.entries.len()),
        Json::List(list) => Some(list.items.len()),
        Json::Text(text) => Some(text.len()),
        _ => None,
    }
}

pub(super) fn contains(dictionary: &Json, key: &Json, meter: &Meter) -> MacroResult {
    let found = match (dictionary, key) {
        (Json::Map(map), Json::Text(key)) => map.get(key).is_some(),
        (Json::Map(_), _) => {
            return Err(refused("Contains: dictionary is an object, key is not a string"));
        }
        (Json::List(list), key) => {
            meter.charge(dictionary.size())?;
            list.items.iter().any(|item| item.value == *key)
        }
        (Json::Text(text), Json::Text(part)) => {
            meter.charge(dictionary.size())?;
            text.contains(&**part)
        }
        (Json::Text(_), _) => {
            return Err(refused("Contains: dictionary is a string, key is not a string"));
        }
        (other, _) => {
            let problem = format!(
                "Contains: dictionary is {}, expected object/array/string",
                other.kind()
            );
            return Err(refused(problem));
        }
    };
    Ok(Json::Bool(found))
}

/// Joins lists, objects or texts, all of the type of the first. The last entry of a key counts.
pub(super) fn merge(params: &Json, meter: &Meter) -> MacroResult {
    let Json::List(params) = params else {
        return Err(refused("Merge: 'params' is not array"));
    };
    let wrong = |i: usize, what: &str| Err(refused(format!("Merge: param {i} is not {what}")));
    match params.items.first().map(|item| &item.value) {
        None => Err(refused("Merge: empty params")),
        Some(Json::List(_)) => {
            let mut merged = ListBuilder::new();
            for (i, param) in params.items.iter().enumerate() {
                let Json::List(list) = &param.value else {
                    return wrong(i, "an array");
                };
                meter.charge(list.items.len())?;
                for item in &list.items {
                    merged.push(item.clone())?;
                }
            }
            Ok(merged.done())
        }
        Some(Json::Map(_)) => {
            let mut merged = MapBuilder::new();
            for (i, param) in params.items.iter().enumerate() {
                let Json::Map(map) = &param.value else {
                    return wrong(i, "an object");
                };
                meter.charge(map.entries.len())?;
                for (key, item) in &map.entries {
                    merged.set(key.clone(), item.clone())?;
                }
            }
            Ok(merged.done())
        }
        Some(Json::Text(_)) => {
            let mut merged = String::new();
            for (i, param) in params.items.iter().enumerate() {
                let Json::Text(text) = &param.value else {
                    return wrong(i, "a string");
                };
                meter.charge(param.value.size())?;
                merged.push_str(text);
            }
            Ok(Json::text(merged))
        }
        Some(_) => Err(refused("Merge: first param is not array/object/string")),
    }
}

/// The whole numbers from one to another, both included.
pub(super) fn range(from: &Json, to: &Json, meter: &Meter) -> MacroResult {
    let Json::Int(from) = from else {
        return Err(refused("Range: from is not an integer"));
    };
    let Json::Int(to) = to else {
        return Err(refused("Range: to is not an integer"));
    };
    let count = i128::from(*to) - i128::from(*from) + 1;
    meter.charge(usize::try_from(count.clamp(0, SIZE_LIMIT as i128 + 1)).unwrap_or(0))?;
    let mut list = ListBuilder::new();
    for number in *from..=*to {
        list.push(Item {
            at: Place { line: 1, column: 1 },
            value: Json::Int(number),
        })?;
    }
    Ok(list.done())
}

pub(super) fn sort(dictionary: &Json, meter: &Meter) -> MacroResult {
    let Json::List(list) = dictionary else {
        return Err(refused("sort: dictionary is not an array"));
    };
    let mut items = list.items.clone();
    // Each element is compared with some others.
    let compared = items.len().max(2).ilog2() as usize;
    meter.charge(dictionary.size().saturating_mul(compared))?;
    let has_order = |item: &Item| item.value.order(&item.value).is_some();
    if !items.iter().all(has_order) {
        return Err(refused("sort: objects have no order"));
    }
    items.sort_by(|a, b| a.value.order(&b.value).unwrap_or(Ordering::Equal));
    let mut sorted = ListBuilder::new();
    for item in items {
        sorted.push(item)?;
    }
    Ok(sorted.done())
}
