//! Differences of two documents, as JSON Merge Patches (RFC 7396).

use serde_json::{Map, Value};

/// The patch that makes `before` to `after`. `None`: they are the same. Documents have no member whose value is
/// null and that one may have to tell from a missing one: a patch cannot say that.
pub(super) fn between(before: &Value, after: &Value) -> Option<Value> {
    if before == after {
        return None;
    }
    let (Value::Object(before), Value::Object(after)) = (before, after) else {
        return Some(after.clone());
    };
    let mut patch = Map::new();
    for name in before.keys().filter(|name| !after.contains_key(*name)) {
        patch.insert(name.clone(), Value::Null);
    }
    for (name, after) in after {
        let changed = match before.get(name) {
            Some(before) => between(before, after),
            None => Some(after.clone()),
        };
        if let Some(changed) = changed {
            patch.insert(name.clone(), changed);
        }
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::between;

    /// Applies a patch, as RFC 7396 says in section 2.
    fn apply(to: &mut Value, patch: &Value) {
        let Value::Object(patch) = patch else {
            *to = patch.clone();
            return;
        };
        if !to.is_object() {
            *to = json!({});
        }
        let object = to.as_object_mut().unwrap();
        for (name, value) in patch {
            match value {
                Value::Null => _ = object.remove(name),
                value => apply(object.entry(name.clone()).or_insert(Value::Null), value),
            }
        }
    }

    #[test]
    fn a_patch_has_what_differs_and_makes_one_document_to_the_other() {
        let documents = [
            json!({}),
            json!({"a": 1, "b": {"c": 2, "d": [1, 2]}}),
            json!({"a": 1, "b": {"c": 3, "d": [1, 2]}}),
            json!({"b": {"d": [2]}, "e": {}}),
            json!({"b": 5, "e": {"f": {"g": "h"}}}),
        ];
        for before in &documents {
            for after in &documents {
                let patch = between(before, after);
                assert_eq!(patch.is_none(), before == after);
                let mut made = before.clone();
                apply(&mut made, &patch.unwrap_or(json!({})));
                assert_eq!(made, *after);
            }
        }
        let [_, before, after, ..] = &documents;
        assert_eq!(between(before, after), Some(json!({"b": {"c": 3}})));
    }
}
