//! Macros that go through a list or an object, and expand a template for each of its elements.

use std::rc::Rc;

use crate::{
    config::{Diagnostic, Place},
    frontdoor::mcrouter::preprocess::{
        item::{Item, Json, Key, ListBuilder, Map, MapBuilder},
        scope::{Expand, Scope, State},
    },
};

/// The value under a key that a macro's object must have.
fn require<'a>(name: &str, map: &'a Map, key: &str) -> Result<&'a Item, Diagnostic> {
    let missing = || Diagnostic::whole(format!("{name}: '{key}' not found"));
    map.get(key).ok_or_else(missing)
}

/// A scope with names for what changes from element to element.
fn names<'a>(
    name: &str,
    map: &Map,
    outer: &'a Scope<'a>,
    named: &[(&str, &str)],
    at: Place,
) -> Result<Scope<'a>, Diagnostic> {
    let scope = Scope::within(outer);
    for (key, default) in named {
        let text: Rc<str> = match map.get(key).map(|item| &item.value) {
            None => (*default).into(),
            Some(Json::Text(text)) => Rc::clone(text),
            Some(_) => return Err(Diagnostic::whole(format!("{name}: {key} is not a string"))),
        };
        let value = Json::Null;
        scope.add(text, State::Ready(Item { at, value }))?;
    }
    Ok(scope)
}

/// The elements of a list with their numbers, or the entries of an object.
fn elements(name: &str, what: &str, value: &Json) -> Result<Vec<(Item, Item)>, Diagnostic> {
    match value {
        Json::List(list) => {
            let element = |(number, item): (i64, &Item)| {
                let value = Json::Int(number);
                (Item { at: item.at, value }, item.clone())
            };
            Ok((0..).zip(&list.items).map(element).collect())
        }
        Json::Map(map) => {
            let entry = |(key, item): &(Key, Item)| {
                let value = Json::Text(Rc::clone(&key.text));
                (Item { at: key.at, value }, item.clone())
            };
            Ok(map.entries.iter().map(entry).collect())
        }
        _ => Err(Diagnostic::whole(format!("{name}: {what} is not array/object"))),
    }
}

/// The elements of a value, without those within them.
fn width(value: &Json) -> usize {
    match value {
        Json::List(list) => list.items.len(),
        Json::Map(map) => map.entries.len(),
        _ => 1,
    }
}

/// The key of an entry that is made of an item.
fn key(item: Item, problem: &str) -> Result<Key, Diagnostic> {
    match item.value {
        Json::Text(text) => Ok(Key { at: item.at, text }),
        _ => Err(Diagnostic::whole(problem)),
    }
}

/// `transform`: each element becomes another one. An entry of an object may become several.
pub(super) fn transform(
    expander: &mut dyn Expand,
    map: &Map,
    at: Place,
    scope: &Scope<'_>,
) -> Result<Item, Diagnostic> {
    let dictionary = expander.item(require("Transform", map, "dictionary")?, scope)?;
    let elements = elements("Transform", "dictionary", &dictionary.value)?;
    let inside = names(
        "Transform",
        map,
        scope,
        &[("keyName", "key"), ("itemName", "item")],
        at,
    )?;
    let (new_item, new_key) = (map.get("itemTransform"), map.get("keyTransform"));
    expander.meter().charge(elements.len())?;
    if let Json::List(_) = dictionary.value {
        let mut list = ListBuilder::new();
        for (number, item) in elements {
            let Some(new_item) = new_item else {
                return Err(Diagnostic::whole(
                    "Transform: itemTransform is required for array",
                ));
            };
            inside.set([number, item]);
            list.push(expander.item(new_item, &inside)?)?;
        }
        let value = list.done();
        return Ok(Item { at, value });
    }
    let mut made = MapBuilder::new();
    for (old, item) in elements {
        inside.set([old.clone(), item.clone()]);
        let keys = match new_key {
            Some(new_key) => expander.item(new_key, &inside)?,
            None => old,
        };
        let keys = match keys.value {
            Json::List(list) => {
                expander.meter().charge(list.items.len())?;
                list.items.clone()
            }
            Json::Text(_) => vec![keys],
            _ => return Err(Diagnostic::whole("Transformed key is not array/string")),
        };
        if keys.is_empty() {
            continue;
        }
        let item = match new_item {
            Some(new_item) => expander.item(new_item, &inside)?,
            None => item,
        };
        for new_key in keys {
            let new_key = key(new_key, "Transformed key list item is not a string")?;
            made.set(new_key, item.clone())?;
        }
    }
    let value = made.done();
    Ok(Item { at, value })
}

/// `process`: one value that each element changes.
pub(super) fn process(
    expander: &mut dyn Expand,
    map: &Map,
    at: Place,
    scope: &Scope<'_>,
) -> Result<Item, Diagnostic> {
    let dictionary = expander.item(require("Process", map, "dictionary")?, scope)?;
    let mut value = expander.item(require("Process", map, "initialValue")?, scope)?;
    let change = require("Process", map, "transform")?;
    let elements = elements("Process", "dictionary", &dictionary.value)?;
    let named = [("keyName", "key"), ("itemName", "item"), ("valueName", "value")];
    let inside = names("Process", map, scope, &named, at)?;
    expander.meter().charge(elements.len())?;
    for (key, item) in elements {
        inside.set([key, item, value]);
        value = expander.item(change, &inside)?;
    }
    Ok(value)
}

/// `foreach`: the elements that meet a condition, or what is made of each, joined.
pub(super) fn foreach(
    expander: &mut dyn Expand,
    map: &Map,
    at: Place,
    scope: &Scope<'_>,
) -> Result<Item, Diagnostic> {
    let from = expander.item(require("Foreach", map, "from")?, scope)?;
    let elements = elements("Foreach", "from", &from.value)?;
    let inside = names("Foreach", map, scope, &[("key", "key"), ("item", "item")], at)?;
    let top = match map.get("top") {
        None => usize::MAX,
        Some(top) => match expander.item(top, scope)?.value {
            Json::Int(top @ 0..) => usize::try_from(top).unwrap_or(usize::MAX),
            _ => return Err(Diagnostic::whole("Foreach: top should be a non-negative integer")),
        },
    };
    let (condition, make) = (map.get("where"), map.get("use"));
    let is_list = matches!(from.value, Json::List(_));
    let mut joined = LoopResult::Nothing;
    let mut left = top;
    expander.meter().charge(elements.len())?;
    for (key, item) in elements {
        if left == 0 {
            break;
        }
        inside.set([key.clone(), item.clone()]);
        if let Some(condition) = condition {
            match expander.item(condition, &inside)?.value {
                Json::Bool(true) => {}
                Json::Bool(false) => continue,
                _ => return Err(Diagnostic::whole("Foreach: expanded 'where' is not boolean")),
            }
        }
        left -= 1;
        match make {
            Some(make) => {
                let made = expander.item(make, &inside)?;
                expander.meter().charge(width(&made.value))?;
                joined.join(made)?;
            }
            None if is_list => joined.push(item)?,
            None => joined.set(self::key(key, "Foreach: the key is not a string")?, item)?,
        }
    }
    let value = match joined {
        LoopResult::List(list) => list.done(),
        LoopResult::Map(map) => map.done(),
        LoopResult::Nothing => match map.get("noMatchResult") {
            Some(instead) => return expander.item(instead, scope),
            None if is_list => ListBuilder::new().done(),
            None => MapBuilder::new().done(),
        },
    };
    Ok(Item { at, value })
}

/// The result of `foreach`. The first thing that is added decides what it is.
enum LoopResult {
    Nothing,
    List(ListBuilder),
    Map(MapBuilder),
}

impl LoopResult {
    fn push(&mut self, item: Item) -> Result<(), Diagnostic> {
        if let Self::Nothing = self {
            *self = Self::List(ListBuilder::new());
        }
        match self {
            Self::List(list) => list.push(item),
            _ => Err(Diagnostic::whole("Foreach: expanded item is not an object")),
        }
    }

    fn set(&mut self, key: Key, item: Item) -> Result<(), Diagnostic> {
        if let Self::Nothing = self {
            *self = Self::Map(MapBuilder::new());
        }
        match self {
            Self::Map(map) => map.set(key, item),
            _ => Err(Diagnostic::whole("Foreach: expanded item is not an array")),
        }
    }

    fn join(&mut self, made: Item) -> Result<(), Diagnostic> {
        match made.value {
            Json::List(list) => {
                if let Self::Nothing = self {
                    *self = Self::List(ListBuilder::new());
                }
                match (&mut *self, list.items.is_empty()) {
                    (Self::List(_), true) => Ok(()),
                    _ => list.items.iter().try_for_each(|item| self.push(item.clone())),
                }
            }
            Json::Map(map) => {
                if let Self::Nothing = self {
                    *self = Self::Map(MapBuilder::new());
                }
                let mut entries = map.entries.iter();
                entries.try_for_each(|(key, item)| self.set(key.clone(), item.clone()))
            }
            _ => Err(Diagnostic::whole("Foreach: expanded item is not object/array")),
        }
    }
}
