//! The parts of a file that are refused, and those that are warned of.

use crate::{around, parse};

#[test]
fn keys_without_effect_in_an_mcrouter_file_are_warned_of() {
    let text = around(r#"{"type": "PoolRoute", "pool": "A", "no_such_key": 1, "bucketize": false}"#);
    let warnings = parse(&text).unwrap().loaded.warnings;
    let route: Vec<&String> = warnings
        .iter()
        .filter(|warning| warning.contains("route: "))
        .collect();
    assert_eq!(route.len(), 1, "{warnings:?}");
    assert!(
        route[0].ends_with("`no_such_key` is no key of this object and is ignored"),
        "{warnings:?}"
    );
}
