//! Parts of lists, objects and texts.

use std::{ops::Range, rc::Rc};

use crate::{
    config::{Diagnostic, Place, document::shortened},
    frontdoor::mcrouter::preprocess::{
        call::{LazyArguments, MacroResult},
        item::{Item, Json, Key, ListBuilder, MapBuilder},
        meter::Meter,
        scope::Expand,
    },
};

/// An element of a list, or the value of a key. The default is expanded only if it is needed.
pub(super) fn select(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let dictionary = unread.take("dictionary", expander)?;
    let key = unread.take("key", expander)?;
    let (found, missing) = match (&dictionary.value, &key.value) {
        (Json::Map(map), Json::Text(key)) => {
            let missing = format!("Select: '{}' not found, default not specified", shortened(key));
            (map.get(key).cloned(), missing)
        }
        (Json::List(list), Json::Int(number)) => {
            let size = list.items.len();
            // Negative numbers count from the end.
            let place = if *number < 0 {
                usize::try_from(number.unsigned_abs())
                    .ok()
                    .and_then(|back| size.checked_sub(back))
            } else {
                usize::try_from(*number).ok()
            };
            let missing = format!("Select: index {number} is out of range [0, {size})");
            (place.and_then(|place| list.items.get(place)).cloned(), missing)
        }
        (Json::Map(_), _) => {
            return Err(Diagnostic::whole(
                "Select: dictionary is an object, key is not a string",
            ));
        }
        (Json::List(_), _) => {
            return Err(Diagnostic::whole(
                "Select: dictionary is an array, key is not an integer",
            ));
        }
        (other, _) => {
            let problem = format!("Select: dictionary is {}, expected array/object", other.kind());
            return Err(Diagnostic::whole(problem));
        }
    };
    match found {
        Some(item) => Ok(item),
        None => {
            let default = unread.optional("default", expander)?;
            default.ok_or_else(|| Diagnostic::whole(missing))
        }
    }
}

/// The elements between two numbers or two keys, both included.
pub(super) fn slice(dictionary: &Json, from: &Json, to: &Json, meter: &Meter) -> MacroResult {
    match dictionary {
        Json::Map(map) => {
            let Json::Text(from) = from else {
                return Err(Diagnostic::whole("Slice: from is not a string"));
            };
            let Json::Text(to) = to else {
                return Err(Diagnostic::whole("Slice: to is not a string"));
            };
            meter.charge(map.entries.len())?;
            let mut part = MapBuilder::new();
            for (key, item) in &map.entries {
                if (from..=to).contains(&&key.text) {
                    part.set(key.clone(), item.clone())?;
                }
            }
            Ok(part.done())
        }
        Json::List(list) => {
            let places = places(from, to, list.items.len())?;
            meter.charge(places.len())?;
            let mut part = ListBuilder::new();
            for item in list.items.get(places).unwrap_or_default() {
                part.push(item.clone())?;
            }
            Ok(part.done())
        }
        Json::Text(text) => {
            let part = text
                .as_bytes()
                .get(places(from, to, text.len())?)
                .unwrap_or_default();
            meter.charge(dictionary.size())?;
            Ok(Json::text(&*String::from_utf8_lossy(part)))
        }
        _ => Err(Diagnostic::whole("Slice: dictionary is not array/object/string")),
    }
}

fn places(from: &Json, to: &Json, length: usize) -> Result<Range<usize>, Diagnostic> {
    let (Json::Int(from), Json::Int(to)) = (from, to) else {
        return Err(Diagnostic::whole("Slice: from/to is not an int"));
    };
    let within = |number: i64| usize::try_from(number.max(0)).unwrap_or(usize::MAX).min(length);
    let (from, to) = (within(*from), within(to.saturating_add(1)));
    Ok(from..to.max(from))
}

/// A dictionary with another value in one place.
pub(super) fn set(dictionary: &Json, key: &Json, value: &Json, meter: &Meter) -> MacroResult {
    let at = Place { line: 1, column: 1 };
    let item = Item {
        at,
        value: value.clone(),
    };
    match dictionary {
        Json::Map(map) => {
            let Json::Text(text) = key else {
                return Err(Diagnostic::whole("Set: key is not a string"));
            };
            meter.charge(map.entries.len())?;
            let mut changed = MapBuilder::new();
            for (key, item) in &map.entries {
                changed.set(key.clone(), item.clone())?;
            }
            let text = Rc::clone(text);
            changed.set(Key { at, text }, item)?;
            Ok(changed.done())
        }
        Json::List(list) => {
            let Json::Int(number) = key else {
                return Err(Diagnostic::whole("Set: key is not an int"));
            };
            let size = list.items.len();
            let place = usize::try_from(*number).ok().filter(|place| *place < size);
            let Some(place) = place else {
                let problem = format!("Set: key '{number}' is out of range [0..{size})");
                return Err(Diagnostic::whole(problem));
            };
            meter.charge(size)?;
            let mut changed = ListBuilder::new();
            for (i, old) in list.items.iter().enumerate() {
                changed.push(if i == place { item.clone() } else { old.clone() })?;
            }
            Ok(changed.done())
        }
        _ => Err(Diagnostic::whole("Set: dictionary is not array/object")),
    }
}
