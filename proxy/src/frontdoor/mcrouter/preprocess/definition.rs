//! A whole text, and its `macros`: definitions of macros and constants, in an object, or in a list of such.

use std::rc::Rc;

use super::{
    call::{Body, Macro, MissingArgument, Parameter},
    expand::Expander,
    item::{Item, Json, Map, MapBuilder},
    scope::{Expand as _, Scope},
};
use crate::config::{
    Diagnostic,
    document::{Node, shortened},
};

impl Expander<'_, '_> {
    /// Expands a whole text, whose `macros` hold in all of it.
    pub(super) fn document(mut self, document: Node) -> Result<Node, Diagnostic> {
        let at = document.at;
        let document = Item::of(document, None).map_err(|error| error.located(at))?;
        let document = match &document.value {
            Json::Map(map) if map.get("macros").is_some() => {
                let mut rest = MapBuilder::new();
                for (key, item) in &map.entries {
                    match &*key.text {
                        "macros" => self.define(item)?,
                        _ => rest.set(key.clone(), item.clone())?,
                    }
                }
                let value = rest.done();
                Item { at, value }
            }
            _ => document,
        };
        let expanded = self.item(&document, &Scope::default())?;
        self.meter().charge(expanded.value.size())?;
        Ok(expanded.into_node())
    }

    /// Reads definitions. Those of a list hold from the next element on.
    fn define(&mut self, item: &Item) -> Result<(), Diagnostic> {
        if let Json::List(list) = &item.value {
            return list.items.iter().try_for_each(|item| self.define(item));
        }
        let expanded = self.item(item, &Scope::default())?;
        match &expanded.value {
            Json::Map(map) => map.entries.iter().try_for_each(|(key, item)| {
                let defined = self.define_one(&key.text, item);
                defined.map_err(|error| error.located(item.at))
            }),
            Json::List(list) => list.items.iter().try_for_each(|item| self.define(item)),
            _ => Err(Diagnostic::at(item.at, "config macros is not an array/object")),
        }
    }

    fn define_one(&mut self, name: &Rc<str>, item: &Item) -> Result<(), Diagnostic> {
        let shown = shortened(name);
        let Json::Map(map) = &item.value else {
            let problem = format!("'{shown}' macro definition is not an object");
            return Err(Diagnostic::whole(problem));
        };
        let result = |what: &str| {
            let problem = || Diagnostic::whole(format!("{what}: 'result' not found"));
            map.get("result").cloned().ok_or_else(problem)
        };
        match map.get("type").map(|item| &item.value) {
            Some(Json::Text(kind)) if &**kind == "macroDef" => {
                let body = Body::Defined(result("Macro definition")?);
                let defined = Macro::new(Rc::clone(name), parameters(map, &shown)?, body)?;
                self.add_macro(defined);
                Ok(())
            }
            Some(Json::Text(kind)) if &**kind == "constDef" => {
                self.add_constant(Rc::clone(name), result("constDef")?);
                Ok(())
            }
            Some(Json::Text(kind)) => {
                let problem = format!("Unknown macro definition type: {}", shortened(kind));
                Err(Diagnostic::whole(problem).with_remedy("macroDef and constDef are known"))
            }
            Some(_) => Err(Diagnostic::whole("macro definition type is not a string")),
            None => Err(Diagnostic::whole(format!(
                "'{shown}' macro definition: 'type' not found"
            ))),
        }
    }
}

fn parameters(map: &Map, shown: &str) -> Result<Vec<Parameter>, Diagnostic> {
    let Some(item) = map.get("params") else {
        return Ok(Vec::new());
    };
    let Json::List(list) = &item.value else {
        let problem = format!("'{shown}' macroDef params is not an array");
        return Err(Diagnostic::at(item.at, problem));
    };
    let mut parameters: Vec<Parameter> = Vec::with_capacity(list.items.len());
    for item in &list.items {
        let parameter = parameter(&item.value).map_err(|problem| Diagnostic::at(item.at, problem))?;
        if parameters.iter().any(|known| known.name == parameter.name) {
            let problem = format!(
                "macro '{shown}' has the parameter '{}' twice",
                shortened(&parameter.name)
            );
            return Err(Diagnostic::at(item.at, problem));
        }
        parameters.push(parameter);
    }
    Ok(parameters)
}

fn parameter(value: &Json) -> Result<Parameter, String> {
    let map = match value {
        Json::Text(name) => {
            return Ok(Parameter {
                name: Rc::clone(name),
                otherwise: MissingArgument::Refused,
            });
        }
        Json::Map(map) => map,
        other => return Err(format!("Macro param is {}, expected string/object", other.kind())),
    };
    let name = match map.get("name").map(|item| &item.value) {
        Some(Json::Text(name)) => Rc::clone(name),
        Some(_) => return Err("Macro param object name is not a string".to_owned()),
        None => return Err("Macro param object: 'name' not found".to_owned()),
    };
    let is_optional = match map.get("optional").map(|item| &item.value) {
        None => None,
        Some(Json::Bool(flag)) => Some(*flag),
        Some(_) => {
            return Err(format!(
                "`optional` of the parameter '{}' is not boolean",
                shortened(&name)
            ));
        }
    };
    let otherwise = match (map.get("default"), is_optional) {
        (Some(_), Some(false)) => {
            let problem = format!(
                "the parameter '{}' has a default, and is not optional",
                shortened(&name)
            );
            return Err(problem);
        }
        (Some(item), _) => match item.value {
            // A null is no value, as in mcrouter.
            Json::Null => MissingArgument::Nothing,
            _ => MissingArgument::Value(item.clone()),
        },
        (None, Some(true)) => MissingArgument::Nothing,
        (None, _) => MissingArgument::Refused,
    };
    Ok(Parameter { name, otherwise })
}
