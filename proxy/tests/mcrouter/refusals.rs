//! The parts of a file that are refused, and those that are warned of.

use crate::{around, parse, refused, rows::each_row};

#[test]
fn unserved_mcrouter_handles_and_keys_are_refused_by_name_and_line() {
    let table = [
        (
            around("\"NoSuchRoute\""),
            "Unknown RouteHandle: NoSuchRoute line: 8",
        ),
        (
            around("{\n\"type\": \"NoSuchRoute\"}"),
            "Unknown RouteHandle: NoSuchRoute line: 9",
        ),
        (
            around("{\"type\": \"WarmUpRoute\"}"),
            "WarmUpRoute is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "hash": "ConsistentHash"}"#),
            "the hash function `ConsistentHash` is not served yet",
        ),
        (
            around(r#"{"type": "OriginalClientHashRoute", "children": "Pool|A", "offset": 2}"#),
            "expected a number below 2, of the children",
        ),
        (
            around(r#"{"type": "OriginalClientHashRoute", "children": "Pool|E"}"#),
            "`children` is missing, line: 8",
        ),
        (
            around(r#"{"type": "KeyParseRoute", "target": "near", "num_routing_parts": 2}"#),
            "`delimiter` is missing, line: 8",
        ),
        (
            around(
                r#"{"type": "KeyParseRoute", "target": "near", "num_routing_parts": 0, "delimiter": ":"}"#,
            ),
            "expected a whole number of at least 1",
        ),
        (
            around(r#"{"type": "LoadBalancerRoute", "children": "Pool|A", "algorithm": "x"}"#),
            "expected \"weighted-hashing\" or \"two-random-choices\"",
        ),
        (
            around(r#"{"type": "PoolRoute", "pool": "A", "hash": "Ch4"}"#),
            "Unknown hash function: Ch4 line: 8; did you mean `Ch3`?",
        ),
        (
            around(
                r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_policy": {"type": "LeastFailuresPolicy"}}"#,
            ),
            "LeastFailuresPolicy is not served yet, line: 8",
        ),
        (
            around(r#"{"type": "FailoverRoute", "children": "Pool|A", "failover_errors": ["x"]}"#),
            "`x` is no result",
        ),
        (
            around(r#"{"type": "ErrorRoute", "result": "mc_res_stored"}"#),
            "`mc_res_stored` is no result, line: 8",
        ),
        (
            around(r#"{"type": "ModifyKeyRoute", "target": "near", "set_routing_prefix": ""}"#),
            "`set_routing_prefix` is not",
        ),
        (
            around("\"LoggingRoute|Pool|A\""),
            "a list stands where one route handle is asked, line: 8",
        ),
        (
            around("\"PoolRoute|a\""),
            "there is no pool `a`, line: 8; did you mean `A`?",
        ),
        (around("\"@x\""), "8:18: Macro: 'x' not found"),
        (
            around("{\"type\": \"NullRoute\", \"vars\": {\"a\": \"%b%\"}}"),
            "8:54: Param in string: 'b' not found",
        ),
        (
            "{\"route\": \"NullRoute\",\n \"macros\": {\"a\": {}}}".to_owned(),
            "2:18: 'a' macro definition: 'type' not found",
        ),
        (
            "{\"route\": \"NullRoute\", \"routes\": []}".to_owned(),
            "both `route` and `routes` are there",
        ),
        ("{}".to_owned(), "neither `route` nor `routes` is there"),
        (
            "{\"routes\": {\"/a/\": \"NullRoute\"}}".to_owned(),
            "`/a/` is no `/region/cluster/`",
        ),
        (
            r#"{"pools": {"A": {"servers": ["a"]}}, "route": "NullRoute"}"#.to_owned(),
            "invalid server address `a` (there is no port)",
        ),
        (
            r#"{"pools": {"A": {"servers": ["a:1:caret"]}}, "route": "NullRoute"}"#.to_owned(),
            "`caret` is not served yet",
        ),
        (
            r#"{"pools": {"A": {"servers": ["a:1"], "use_ssl": true}}, "route": "NullRoute"}"#.to_owned(),
            "`use_ssl` is not",
        ),
        (
            r#"{"pools": {"A": {"inherit": "A"}}, "route": "NullRoute"}"#.to_owned(),
            "pools.A: ",
        ),
        (
            r#"{"named_handles": {"a": "LoggingRoute|b", "b": "LoggingRoute|a"}, "route": "a"}"#.to_owned(),
            "the named handle `a` leads back to itself",
        ),
    ];
    each_row(table, |(text, expected)| {
        let message = refused(text);
        assert!(message.contains(expected), "{text}\n{message}");
    });
}

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
