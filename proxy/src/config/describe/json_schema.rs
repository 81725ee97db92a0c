//! JSON Schema (2020-12) of our YAML.

use serde_json::{Map, Value, json};

use crate::config::{
    form::{Form, Key, Section, Shape},
    routes::HANDLES,
    yaml::TopKeys,
};

/// The schema, for editors that check while the user types.
pub fn json_schema() -> Value {
    let Value::Object(mut schema) = of(&TopKeys::shape()) else {
        return Value::Null;
    };
    schema.insert(
        "$schema".to_owned(),
        json!("https://json-schema.org/draft/2020-12/schema"),
    );
    schema.insert("title".to_owned(), json!("Proxima configuration"));
    schema.insert(
        "$defs".to_owned(),
        json!({ "route": route(), "children": children() }),
    );
    Value::Object(schema)
}

/// The schema as the text of a file.
pub fn json_schema_text() -> String {
    format!("{:#}\n", json_schema())
}

fn of(shape: &Shape) -> Value {
    match shape {
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::Count { min, max } => json!({ "type": "integer", "minimum": min, "maximum": max }),
        Shape::Number { min, max } => {
            let mut number = json!({ "type": "number", "minimum": min });
            if *max < f64::MAX {
                number["maximum"] = json!(max);
            }
            number
        }
        // A number is a text as well: `salt: 5` is as good as `salt: "5"`.
        Shape::Text { pattern: None, .. } => json!({ "type": ["string", "number", "boolean"] }),
        Shape::Text {
            pattern: Some(pattern),
            ..
        } => json!({ "type": "string", "pattern": pattern }),
        Shape::TextOrCount { pattern, .. } => json!({ "type": ["string", "integer"], "pattern": pattern }),
        Shape::Words(words) => json!({ "enum": words.iter().map(|(word, _)| *word).collect::<Vec<_>>() }),
        Shape::List(shape) => json!({ "type": "array", "items": of(shape) }),
        Shape::ByName { of: shape, .. } => json!({ "type": "object", "additionalProperties": of(shape) }),
        Shape::ByWord { words, of: shape } => {
            let properties: Map<String, Value> = words
                .iter()
                .map(|(word, _)| ((*word).to_owned(), of(shape)))
                .collect();
            json!({ "type": "object", "properties": properties, "additionalProperties": false })
        }
        Shape::AnyOf(shapes) => json!({ "anyOf": shapes.iter().map(of).collect::<Vec<_>>() }),
        Shape::Section(section) => of_section(section),
        Shape::Route => json!({ "$ref": "#/$defs/route" }),
        Shape::Children => json!({ "$ref": "#/$defs/children" }),
    }
}

fn of_section(section: &Section) -> Value {
    let properties: Map<String, Value> = section
        .keys
        .iter()
        .map(|key| (key.name.to_owned(), of_key(key)))
        .collect();
    let required: Vec<&str> = section
        .keys
        .iter()
        .filter(|key| key.required)
        .map(|key| key.name)
        .collect();
    let map = json!({
        "type": "object",
        "description": one_line(section.about),
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    match section.keys.iter().find(|key| Some(key.name) == section.short) {
        Some(short) => json!({ "anyOf": [of(&short.shape), map] }),
        None => map,
    }
}

fn of_key(key: &Key) -> Value {
    let mut value = of(&key.shape);
    value["description"] = json!(one_line(key.about));
    if let Some(default) = &key.default {
        value["default"] = serde_json::from_str(default).unwrap_or_else(|_| json!(default));
    }
    value
}

fn route() -> Value {
    let words: Vec<&str> = HANDLES
        .iter()
        .filter(|handle| handle.is_word)
        .map(|handle| handle.name)
        .collect();
    let with_parameters = HANDLES.iter().filter(|handle| !handle.is_word).map(|handle| {
        let mut value = of(&(handle.shape)());
        value["description"] = json!(one_line(handle.about));
        (handle.name.to_owned(), value)
    });
    json!({
        "description": "The name of a route or of a pool, a word, or one handle with what it needs",
        "anyOf": [
            { "type": "string", "minLength": 1, "examples": words },
            { "type": "null" },
            {
                "type": "object",
                "minProperties": 1,
                "maxProperties": 1,
                "properties": with_parameters.collect::<Map<_, _>>(),
                "additionalProperties": false,
            },
        ],
    })
}

fn children() -> Value {
    json!({
        "description": "The name of a pool for all its servers, or a list of routes",
        "anyOf": [
            { "type": "string", "minLength": 1 },
            { "type": "array", "minItems": 1, "items": { "$ref": "#/$defs/route" } },
        ],
    })
}

/// A doc comment without its line breaks.
pub(super) fn one_line(about: &str) -> String {
    about.split_whitespace().collect::<Vec<_>>().join(" ")
}
