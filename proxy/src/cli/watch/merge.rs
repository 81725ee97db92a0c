//! A document that changes by JSON Merge Patch (RFC 7396).

use serde_json::{Map, Value};

use super::messages::{MOST, TooLong};

/// A document of bounded size.
pub(super) struct Document {
    pub(super) value: Value,
    /// It is not longer than this as text.
    most: usize,
}

impl Document {
    /// The document from a text of this length.
    pub(super) fn new(value: Value, length: usize) -> Self {
        Self { value, most: length }
    }

    /// Changes it by a patch, whose text has this length.
    ///
    /// # Errors
    /// It has become too long.
    pub(super) fn change(&mut self, patch: Value, length: usize) -> Result<(), TooLong> {
        merge(&mut self.value, patch);
        self.most += length;
        if self.most > MOST {
            // Most patches replace what was there, so that it is rarely as long as all of them.
            self.most = self.value.to_string().len();
        }
        match self.most > MOST {
            true => Err(TooLong),
            false => Ok(()),
        }
    }
}

fn merge(document: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *document = patch;
        return;
    };
    if !document.is_object() {
        *document = Value::Object(Map::new());
    }
    let Value::Object(document) = document else {
        return;
    };
    for (name, value) in patch {
        match value {
            Value::Null => drop(document.remove(&name)),
            value => merge(document.entry(name).or_insert(Value::Null), value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of RFC 7396's appendix A: document, patch, result.
    const EXAMPLES: &str = r#"
        {"a":"b"}              {"a":"c"}                       {"a":"c"}
        {"a":"b"}              {"b":"c"}                       {"a":"b","b":"c"}
        {"a":"b"}              {"a":null}                      {}
        {"a":"b","b":"c"}      {"a":null}                      {"b":"c"}
        {"a":["b"]}            {"a":"c"}                       {"a":"c"}
        {"a":"c"}              {"a":["b"]}                     {"a":["b"]}
        {"a":{"b":"c"}}        {"a":{"b":"d","c":null}}        {"a":{"b":"d"}}
        {"a":[{"b":"c"}]}      {"a":[1]}                       {"a":[1]}
        ["a","b"]              ["c","d"]                       ["c","d"]
        {"a":"b"}              ["c"]                           ["c"]
        {"a":"foo"}            null                            null
        {"a":"foo"}            "bar"                           "bar"
        {"e":null}             {"a":1}                         {"e":null,"a":1}
        [1,2]                  {"a":"b","c":null}              {"a":"b"}
        {}                     {"a":{"bb":{"ccc":null}}}       {"a":{"bb":{}}}
    "#;

    #[test]
    fn a_document_may_change_for_ever_and_not_grow_for_ever() {
        let text = |length| Value::from("x".repeat(length));
        let patch =
            |name: usize| Value::Object([(format!("part {name}"), text(MOST / 4))].into_iter().collect());
        let mut document = Document::new(Value::Null, 4);
        for _ in 0..20 {
            assert_eq!(document.change(patch(0), MOST / 4), Ok(()));
        }
        let grown: Vec<bool> = (0..4)
            .map(|part| document.change(patch(part), MOST / 4).is_ok())
            .collect();
        assert_eq!(grown, [true, true, true, false]);
    }

    #[test]
    fn the_examples_of_the_standard_give_its_results() {
        let mut wrong = Vec::new();
        for line in EXAMPLES.trim().lines() {
            let mut texts = line
                .split_whitespace()
                .map(|text| serde_json::from_str(text).unwrap());
            let [mut document, patch, result]: [Value; 3] = std::array::from_fn(|_| texts.next().unwrap());
            merge(&mut document, patch);
            if document != result {
                wrong.push(format!("{line}: {document}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}
