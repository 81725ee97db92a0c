//! Expands values: strings with parameters and calls, objects that are calls, and the values within.

use std::{collections::HashMap, rc::Rc};

use super::{
    Constants, built_in,
    call::{Macro, RawArguments},
    item::{Constant, Item, Json, Key, ListBuilder, Map, MapBuilder},
    meter::Meter,
    scope::{Expand, Import, Scope, State},
    sources::Sources,
    text::{self, Piece},
};
use crate::config::{
    Diagnostic, Place,
    document::{DEPTH_LIMIT, shortened},
};

/// Calls that a message names, from the innermost on.
const NOTES: usize = 3;

/// Expands one text, and what it imports.
#[derive(Debug)]
pub(super) struct Expander<'a, 's> {
    macros: HashMap<Rc<str>, Rc<Macro>>,
    constants: HashMap<Rc<str>, State>,
    imported: HashMap<Rc<str>, Import>,
    sources: &'a mut Sources<'s>,
    meter: &'a Meter,
    depth: usize,
    notes: usize,
}

impl<'a, 's> Expander<'a, 's> {
    pub(super) fn new(constants: &Constants, sources: &'a mut Sources<'s>, meter: &'a Meter) -> Self {
        // Constants of the command line stand nowhere in the text.
        let at = Place { line: 1, column: 1 };
        let constant = |(name, constant): (&String, &Constant)| {
            let value = match constant {
                Constant::Int(number) => Json::Int(*number),
                Constant::Text(text) => Json::text(text.as_str()),
            };
            (name.as_str().into(), State::Raw(Item { at, value }))
        };
        let macros = built_in::all().map(|built_in| (Rc::clone(&built_in.name), Rc::new(built_in)));
        Self {
            macros: macros.collect(),
            constants: constants.iter().map(constant).collect(),
            imported: HashMap::new(),
            sources,
            meter,
            depth: 0,
            notes: 0,
        }
    }

    /// Defines a macro, in the place of one of the same name.
    pub(super) fn add_macro(&mut self, defined: Macro) {
        self.macros.insert(Rc::clone(&defined.name), Rc::new(defined));
    }

    /// Defines a constant, in the place of one of the same name. It is expanded at its first use.
    pub(super) fn add_constant(&mut self, name: Rc<str>, item: Item) {
        self.constants.insert(name, State::Raw(item));
    }

    fn deeper<T>(
        &mut self,
        at: Place,
        expand: impl FnOnce(&mut Self) -> Result<T, Diagnostic>,
    ) -> Result<T, Diagnostic> {
        self.meter.charge(1).map_err(|error| error.located(at))?;
        if self.depth >= DEPTH_LIMIT {
            let problem = format!("Too many nested macros. Check for cycles. The limit is {DEPTH_LIMIT}");
            return Err(Diagnostic::at(at, problem));
        }
        self.depth += 1;
        let expanded = expand(self);
        self.depth -= 1;
        expanded.map_err(|error| error.located(at))
    }

    fn string(&mut self, text: &str, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        self.meter.charge(text.len() / 64)?;
        let Some(call) = text.strip_prefix('@') else {
            let value = self.substituted(text, at, scope)?;
            return Ok(value);
        };
        let written = text::call(call).map_err(|error| Diagnostic::whole(error.to_string()))?;
        let name = self.substituted(written.name, at, scope)?;
        let Json::Text(name) = name.value else {
            return Err(Diagnostic::whole(format!(
                "Macro name is {}, string expected",
                name.value.kind()
            )));
        };
        let Some(called) = self.macros.get(&name).cloned() else {
            return Err(Diagnostic::whole(format!(
                "Macro: '{}' not found",
                shortened(&name)
            )));
        };
        called.call(RawArguments::Short(&written.arguments), at, scope, self)
    }

    /// A text whose parameters are replaced. A text that is one parameter becomes the value of any type.
    fn substituted(&mut self, text: &str, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        let pieces = text::pieces(text).map_err(|error| Diagnostic::whole(error.to_string()))?;
        let (mut out, last) = (String::new(), pieces.len().saturating_sub(1));
        for (i, piece) in pieces.into_iter().enumerate() {
            let name = match piece {
                Piece::Text(text) => {
                    out.push_str(&text);
                    continue;
                }
                Piece::Parameter(name) => name,
            };
            let found = self.value_of(&name, at, scope)?;
            if i == last && out.is_empty() {
                return Ok(found);
            }
            let Json::Text(text) = &found.value else {
                let problem = format!("Param in string '{}' is not a string", shortened(&name));
                return Err(Diagnostic::whole(problem).with_remedy("write @str(…) around it"));
            };
            self.meter.charge(text.len() / 64)?;
            out.push_str(text);
        }
        let value = Json::text(out);
        Ok(Item { at, value })
    }

    /// The value of a name, in its scope or as a constant.
    fn value_of(&mut self, name: &str, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        if let Some(item) = scope.find(name, self)? {
            return Ok(item);
        }
        let Some(constant) = self.constants.get_mut(name) else {
            return Err(Diagnostic::whole(format!(
                "Param in string: '{}' not found",
                shortened(name)
            )));
        };
        let item = match std::mem::replace(constant, State::Busy) {
            State::Ready(item) => item,
            State::Raw(raw) => self.item(&raw, &Scope::default())?,
            State::Busy => {
                let problem = format!("Const '{}' leads back to itself", shortened(name));
                return Err(Diagnostic::whole(problem));
            }
        };
        self.constants.insert(name.into(), State::Ready(item.clone()));
        Ok(Item { at, ..item })
    }

    fn object(&mut self, map: &Map, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        let Some(vars) = map.get("vars") else {
            return self.in_scope(map, at, scope);
        };
        let Json::Map(vars) = &vars.value else {
            let problem = format!("vars is {}, expected object", vars.value.kind());
            return Err(Diagnostic::at(vars.at, problem));
        };
        let inside = Scope::within(scope);
        for (key, item) in &vars.entries {
            inside.add(Rc::clone(&key.text), State::Raw(item.clone()))?;
        }
        inside.settle(self)?;
        self.in_scope(map, at, &inside)
    }

    fn in_scope(&mut self, map: &Map, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        if let Some(kind) = map.get("type")
            && let Json::Text(kind) = self.item(kind, scope)?.value
        {
            if matches!(&*kind, "macroDef" | "constDef") {
                // Definitions are expanded where they are used.
                return without_vars(map, at);
            }
            if let Some(walk) = built_in::walk(&kind) {
                return walk(self, map, at, scope);
            }
            if let Some(called) = self.macros.get(&kind).cloned() {
                return called.call(RawArguments::Long(map), at, scope, self);
            }
        }
        let mut expanded = MapBuilder::new();
        for (key, item) in &map.entries {
            if &*key.text == "vars" {
                continue;
            }
            let text = match text::is_plain(&key.text) {
                true => Rc::clone(&key.text),
                false => match self.text(&key.text, key.at, scope)?.value {
                    Json::Text(text) => text,
                    _ => return Err(Diagnostic::at(key.at, "Expanded key is not a string")),
                },
            };
            let item = self.item(item, scope)?;
            expanded.set(Key { at: key.at, text }, item)?;
        }
        Ok(Item {
            at,
            value: expanded.done(),
        })
    }
}

impl Expand for Expander<'_, '_> {
    fn item(&mut self, item: &Item, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        self.deeper(item.at, |expander| match &item.value {
            Json::Text(text) if text::is_plain(text) => Ok(item.clone()),
            Json::Text(text) => expander.string(text, item.at, scope),
            Json::List(list) => {
                let mut expanded = ListBuilder::new();
                for item in &list.items {
                    expanded.push(expander.item(item, scope)?)?;
                }
                Ok(Item {
                    at: item.at,
                    value: expanded.done(),
                })
            }
            Json::Map(map) => expander.object(map, item.at, scope),
            _ => Ok(item.clone()),
        })
    }

    fn text(&mut self, text: &str, at: Place, scope: &Scope<'_>) -> Result<Item, Diagnostic> {
        self.deeper(at, |expander| expander.string(text, at, scope))
    }

    fn has_constant(&self, name: &str) -> bool {
        self.constants.contains_key(name)
    }

    fn noted(&mut self, error: Diagnostic, name: &str, at: Place) -> Diagnostic {
        if self.notes >= NOTES || error.at.is_some_and(|inner| inner.line == at.line) {
            return error;
        }
        self.notes += 1;
        let problem = format!(
            "{} (in macro '{}', line: {})",
            error.problem,
            shortened(name),
            at.line
        );
        Diagnostic { problem, ..error }
    }

    fn meter(&self) -> &Meter {
        self.meter
    }

    fn imported_text(&mut self, path: &str) -> Result<String, Diagnostic> {
        self.sources.imported(path)
    }

    fn imported(&mut self) -> &mut HashMap<Rc<str>, Import> {
        &mut self.imported
    }
}

fn without_vars(map: &Map, at: Place) -> Result<Item, Diagnostic> {
    let mut rest = MapBuilder::new();
    for (key, item) in map.entries.iter().filter(|(key, _)| &*key.text != "vars") {
        rest.set(key.clone(), item.clone())?;
    }
    Ok(Item {
        at,
        value: rest.done(),
    })
}
