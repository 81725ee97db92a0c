//! The language, row by row: the results of texts, and the reasons of refusals.

use std::{fs, time::Instant};

use super::{
    Constant, Constants, Preprocessor,
    item::{Item, Json},
    meter::Meter,
};
use crate::{
    config::{document::Node, reading::Reading},
    frontdoor::mcrouter::dump::Origin,
};

fn constants() -> Constants {
    let text = |name: &str, value: &str| (name.to_owned(), Constant::Text(value.to_owned()));
    [
        text("default-region", "here"),
        text("PORT", "11211"),
        text("call", "@str(@add(@int(1),@int(2)))"),
        ("hostid".to_owned(), Constant::Int(7)),
    ]
    .into()
}

fn expand(text: &str) -> Result<Node, String> {
    let constants = constants();
    let mut preprocessor = Preprocessor {
        // Less than users have, so that the test of it is quick.
        meter: Meter::new(200_000),
        ..Preprocessor::new(&constants, Origin::Files, None)
    };
    let expanded = preprocessor.expand(text, &mut Reading::default());
    expanded.map_err(|diagnostic| diagnostic.to_string())
}

/// The value of `x` in a document, as JSON.
fn value(macros: &str, x: &str) -> Result<String, String> {
    let macros = if macros.is_empty() { "{}" } else { macros };
    let node = expand(&format!("{{\"x\": {x},\n\"macros\": {macros}}}"))?;
    let item = Item::of(node, None).map_err(|diagnostic| diagnostic.to_string())?;
    match &item.value {
        Json::Map(map) if map.entries.len() == 1 => Ok(map.get("x").ok_or("no x")?.value.to_string()),
        other => Err(format!("not alone: {other}")),
    }
}

/// Collects the rows that fail.
fn each_value(macros: &str, rows: &[(&str, &str)]) {
    let failed = rows.iter().filter_map(|(x, expected)| {
        let found = value(macros, x).unwrap_or_else(|error| format!("refused: {error}"));
        (found != *expected).then(|| format!("{x}\n  expected {expected}\n  found    {found}"))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

fn each_refused(macros: &str, rows: &[(&str, &str)]) {
    let failed = rows.iter().filter_map(|(x, expected)| {
        let found = value(macros, x).map_or_else(|error| error, |made| format!("accepted: {made}"));
        (!found.contains(expected)).then(|| format!("{x}\n  expected {expected}\n  found    {found}"))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

const MACROS: &str = r#"{
    "word": {"type": "macroDef", "result": "w"},
    "same": {"type": "macroDef", "params": ["a"], "result": "%a%"},
    "pair": {"type": "macroDef", "params": ["k", "v"], "result": {"%k%": "%v%"}},
    "called": {"type": "macroDef", "params": ["name"], "result": "@%name%"},
    "server": {"type": "macroDef", "params": ["host", {"name": "port", "default": "1"}], "result": "%host%:%port%"},
    "either": {"type": "macroDef", "params": ["c", {"name": "a", "optional": true}], "result": "@if(%c%, yes, %a%)"},
    "twice": {"type": "macroDef", "params": ["l"], "result": ["%l%", "%l%"]},
    "down": {"type": "macroDef", "params": ["n"],
        "result": "@if(@equals(%n%,@int(0)), end, @down(@sub(%n%,@int(1))))"},
    "raw": {"type": "macroDef", "params": [{"name": "a", "default": "%no%"}], "result": "%a%"},
    "\\@": {"type": "macroDef", "result": "at"},
    "region": {"type": "constDef", "result": "%default-region%-1"},
    "list": {"type": "constDef", "result": ["b", "a", "c"]},
    "object": {"type": "constDef", "result": {"a": 1, "b": {"c": 2}}},
    "five": {"type": "constDef", "result": "@add(%two%,@int(3))"},
    "two": {"type": "constDef", "result": 2}
}"#;

#[test]
fn macros_constants_and_escapes_become_what_they_stand_for() {
    each_value(
        MACROS,
        &[
            // Plain values stay as they are.
            ("null", "null"),
            ("true", "true"),
            ("-5", "-5"),
            ("0.25", "0.25"),
            ("1.0", "1.0"),
            ("1e300", "1e300"),
            ("9223372036854775807", "9223372036854775807"),
            ("[]", "[]"),
            ("{}", "{}"),
            ("\"\"", "\"\""),
            ("\"a, (b)\"", "\"a, (b)\""),
            ("[1, [2, {\"k\": \"v\"}]]", "[1,[2,{\"k\":\"v\"}]]"),
            // Calls in strings.
            ("\"@word\"", "\"w\""),
            (
                "\"@word()\"",
                "refused: 1:7: Too many arguments for macro word. Expected at most 0 got 1",
            ),
            ("\"@same(a)\"", "\"a\""),
            ("\"@same( a b )\"", "\"a b\""),
            ("\"@same()\"", "\"\""),
            ("\"@same(@same(@same(x)))\"", "\"x\""),
            ("\"@pair(k, v)\"", "{\"k\":\"v\"}"),
            ("\"@pair(k,)\"", "{\"k\":\"\"}"),
            ("\"@pair(@same(a),@same(b))\"", "{\"a\":\"b\"}"),
            ("\"@pair(a\\\\,b, c)\"", "{\"a,b\":\"c\"}"),
            ("\"@same(\\\\))\"", "\")\""),
            ("\"@same(a\\\\ )\"", "\"a \""),
            ("\"@called(word)\"", "\"w\""),
            ("\"@\\\\@\"", "\"at\""),
            ("\"@%n%\"", "refused: 1:7: Param in string: 'n' not found"),
            ("\"@same(@int(5))\"", "5"),
            ("\"@same(%list%)\"", "[\"b\",\"a\",\"c\"]"),
            ("\"@server(h)\"", "\"h:1\""),
            ("\"@server(h, %PORT%)\"", "\"h:11211\""),
            ("\"@either(@bool(1))\"", "\"yes\""),
            ("\"@either(@bool(0), no)\"", "\"no\""),
            ("\"@twice(%two%)\"", "[2,2]"),
            ("\"@down(@int(20))\"", "\"end\""),
            // A default is not expanded.
            ("\"@raw\"", "\"%no%\""),
            // Calls as objects. Other keys do not matter.
            (r#"{"type": "same", "a": [1, "@word"], "z": 1}"#, "[1,\"w\"]"),
            (r#"{"type": "server", "host": "h"}"#, "\"h:1\""),
            (r#"{"type": "@same(same)", "a": 1}"#, "1"),
            (
                r#"{"type": "other", "a": "@word"}"#,
                "{\"type\":\"other\",\"a\":\"w\"}",
            ),
            // Keys are expanded as well. The last of equal ones counts.
            (
                r#"{"@word": 1, "%region%": 2, "\\@k": 3}"#,
                "{\"w\":1,\"here-1\":2,\"@k\":3}",
            ),
            (r#"{"a": 1, "@same(a)": 2}"#, "{\"a\":2}"),
            // Parameters and constants.
            ("\"%hostid%\"", "7"),
            ("\"%region%\"", "\"here-1\""),
            ("\"a%region%b%PORT%\"", "\"ahere-1b11211\""),
            ("\"%five%\"", "5"),
            ("\"%call%\"", "\"3\""),
            ("\"%object%\"", "{\"a\":1,\"b\":{\"c\":2}}"),
            ("\"100\\\\%\"", "\"100%\""),
            ("\"\\\\@word\"", "\"@word\""),
            ("\"a\\\\b\\\\\\\\\"", "\"ab\\\\\""),
            ("\"user@host\"", "\"user@host\""),
            // What a parameter brings is not read again.
            ("\"@same(\\\\%two\\\\%)\"", "\"%two%\""),
            ("\"@same(\\\\@word)\"", "\"@word\""),
            // Variables, which may use each other in any order.
            (
                r#"{"vars": {"a": "%b%!", "b": "@word"}, "k": "%a%"}"#,
                "{\"k\":\"w!\"}",
            ),
            (
                r#"{"vars": {"a": 1}, "in": {"vars": {"a": 2, "b": 3}, "k": ["%a%", "%b%"]}, "out": "%a%"}"#,
                "{\"in\":{\"k\":[2,3]},\"out\":1}",
            ),
            (
                r#"{"type": "define", "vars": {"l": [1]}, "result": ["%l%", "%l%"]}"#,
                "[[1],[1]]",
            ),
            (
                r#"{"vars": {"a": "x"}, "type": "same"}"#,
                "refused: 1:7: Macro call same: 'a' parameter not found",
            ),
            (r#"{"vars": {"two": "mine"}, "k": "%two%"}"#, "{\"k\":\"mine\"}"),
            ("\"@defined(two)\"", "true"),
            ("\"@defined(three)\"", "false"),
            (r#"{"vars": {"v": 1}, "k": "@defined(v)"}"#, "{\"k\":true}"),
            // Definitions elsewhere than under `macros` are values.
            (
                r#"{"type": "macroDef", "result": "@word"}"#,
                "{\"type\":\"macroDef\",\"result\":\"@word\"}",
            ),
        ],
    );
}

#[test]
fn built_in_macros_compute_their_results() {
    each_value(
        MACROS,
        &[
            ("\"@int( -12 )\"", "-12"),
            ("\"@int(@bool(true))\"", "1"),
            ("\"@int(@double(3.0))\"", "3"),
            ("\"@double(0.5)\"", "0.5"),
            ("\"@double(@int(2))\"", "2.0"),
            ("\"@str(@int(5))\"", "\"5\""),
            ("\"@str(@double(0.5))\"", "\"0.5\""),
            ("\"@str(@bool(true))\"", "\"1\""),
            (
                "[\"@bool(true)\", \"@bool(no)\", \"@bool(1)\", \"@bool(@int(0))\"]",
                "[true,false,true,false]",
            ),
            (
                "[\"@isInt(@int(1))\", \"@isInt(1)\", \"@isString(1)\"]",
                "[true,false,true]",
            ),
            ("[\"@isDouble(@double(1))\", \"@isBool(%two%)\"]", "[true,false]"),
            (
                "[\"@isArray(%list%)\", \"@isObject(%list%)\", \"@isObject(%object%)\"]",
                "[true,false,true]",
            ),
            ("\"@keys(%object%)\"", "[\"a\",\"b\"]"),
            ("\"@values(%object%)\"", "[1,{\"c\":2}]"),
            (
                "[\"@size(%object%)\", \"@size(%list%)\", \"@size(ab)\", \"@size()\"]",
                "[2,3,2,0]",
            ),
            ("[\"@empty(%list%)\", \"@empty()\"]", "[false,true]"),
            (
                "[\"@contains(%list%, a)\", \"@contains(%list%, x)\", \"@contains(abc, bc)\", \"@contains(%object%, b)\"]",
                "[true,false,true,true]",
            ),
            (r#"{"type": "merge", "params": [[1], [], [2, 3]]}"#, "[1,2,3]"),
            (
                r#"{"type": "merge", "params": [{"a": 1, "b": 2}, {"b": 3, "c": 4}]}"#,
                "{\"a\":1,\"b\":3,\"c\":4}",
            ),
            (r#"{"type": "merge", "params": ["a", "@word", "b"]}"#, "\"awb\""),
            ("\"@range(@int(-1), @int(2))\"", "[-1,0,1,2]"),
            ("\"@range(@int(2), @int(1))\"", "[]"),
            ("\"@sort(%list%)\"", "[\"a\",\"b\",\"c\"]"),
            (
                r#"{"type": "sort", "dictionary": ["9", 10, "10", 9, 9.5, true, null]}"#,
                "[null,true,9,9.5,10,\"10\",\"9\"]",
            ),
            (
                r#"{"type": "sort", "dictionary": [[2], [1, 5], [1]]}"#,
                "[[1],[1,5],[2]]",
            ),
            (
                "[\"@select(%list%, @int(0))\", \"@select(%list%, @int(-1))\"]",
                "[\"b\",\"c\"]",
            ),
            ("\"@select(%object%, a)\"", "1"),
            ("\"@select(%object%, x, @word)\"", "\"w\""),
            ("\"@select(%object%, a, @fail(no))\"", "1"),
            ("\"@select(%list%, @int(-4), none)\"", "\"none\""),
            ("\"@slice(%list%, @int(1), @int(9))\"", "[\"a\",\"c\"]"),
            ("\"@slice(%list%, @int(2), @int(1))\"", "[]"),
            ("\"@slice(abcd, @int(-5), @int(1))\"", "\"ab\""),
            ("\"@slice(%object%, b, z)\"", "{\"b\":{\"c\":2}}"),
            (
                r#"{"type": "set", "dictionary": "%object%", "key": "a", "value": [0]}"#,
                "{\"a\":[0],\"b\":{\"c\":2}}",
            ),
            (
                r#"{"type": "set", "dictionary": {}, "key": "n", "value": 1}"#,
                "{\"n\":1}",
            ),
            (
                r#"{"type": "set", "dictionary": [1, 2], "key": 1, "value": 3}"#,
                "[1,3]",
            ),
            ("\"@split(a.b..c, .)\"", "[\"a\",\"b\",\"\",\"c\"]"),
            ("\"@split(abc,)\"", "[\"abc\"]"),
            ("\"@split(,x)\"", "[\"\"]"),
            ("\"@split(a--b, --)\"", "[\"a\",\"b\"]"),
            (
                r#"{"type": "shuffle", "dictionary": [0, 1, 2, 3], "seed": 7}"#,
                "[1,2,0,3]",
            ),
            ("\"@shuffle(@range(@int(0),@int(0)))\"", "[0]"),
            (
                "[\"@equals(a,a)\", \"@equals(%two%, @int(2))\", \"@equals(%two%, 2)\"]",
                "[true,true,false]",
            ),
            (
                "[\"@equals(%object%, %object%)\", \"@equals(%list%, %object%)\"]",
                "[true,false]",
            ),
            (
                r#"{"type": "equals", "A": {"a": 1, "b": [2.0]}, "B": {"b": [2], "a": 1}}"#,
                "true",
            ),
            (
                "[\"@less(a,b)\", \"@less(@int(10),@int(9))\", \"@less(@int(1),a)\"]",
                "[true,false,true]",
            ),
            (
                "[\"@and(@bool(1),@bool(0))\", \"@or(@bool(0),@bool(1))\", \"@not(@bool(0))\"]",
                "[false,true,true]",
            ),
            (
                "[\"@and(@bool(0),@fail(x))\", \"@or(@bool(1),@fail(x))\"]",
                "[false,true]",
            ),
            ("\"@if(@equals(a,b), @fail(x), y)\"", "\"y\""),
            (
                r#"{"type": "if", "condition": true, "is_true": [1], "is_false": "@fail(x)"}"#,
                "[1]",
            ),
            (
                "[\"@add(@int(2),@int(3))\", \"@sub(@int(2),@int(3))\", \"@mul(@int(2),@int(-3))\"]",
                "[5,-1,-6]",
            ),
            (
                "[\"@div(@int(-7),@int(2))\", \"@mod(@int(-7),@int(2))\"]",
                "[-3,-1]",
            ),
            (
                "[\"@bitwiseAnd(@int(6),@int(3))\", \"@bitwiseOr(@int(6),@int(3))\", \"@bitwiseXor(@int(6),@int(3))\"]",
                "[2,7,5]",
            ),
            (
                "[\"@bitwiseNot(@int(0))\", \"@bitwiseLeftShift(@int(3),@int(2))\"]",
                "[-1,12]",
            ),
            ("\"@bitwiseRightShift(@int(-1),@int(60))\"", "15"),
            ("\"@hash(abcd)\"", "6660178300034425268"),
            ("\"@hash(@int(2313))\"", "-4996987850411076878"),
            (
                r#"{"type": "weightedHash", "dictionary": {"a": 0.0, "b": 1.0}, "key": 5}"#,
                "\"b\"",
            ),
            (
                r#"{"type": "weightedHash", "dictionary": {"only": 3}, "key": "k"}"#,
                "\"only\"",
            ),
            (
                "[\"@isLocalIp(127.0.0.1)\", \"@isLocalIp(::1)\", \"@isLocalIp(x)\"]",
                "[true,true,false]",
            ),
            ("\"@isLocalIp(192.0.2.1)\"", "false"),
            // What goes through lists and objects.
            (
                r#"{"type": "transform", "dictionary": "%list%", "itemTransform": "%item%%default-region%"}"#,
                "[\"bhere\",\"ahere\",\"chere\"]",
            ),
            (
                r#"{"type": "transform", "dictionary": ["a"], "itemTransform": ["%key%", "%item%"]}"#,
                "[[0,\"a\"]]",
            ),
            (
                r#"{"type": "transform", "dictionary": {"a": "x", "b": "y"}, "keyTransform": "%item%", "itemTransform": "%key%"}"#,
                "{\"x\":\"a\",\"y\":\"b\"}",
            ),
            (
                r#"{"type": "transform", "dictionary": {"a": ["x", "y"], "b": []}, "keyTransform": "%item%", "itemTransform": "%key%"}"#,
                "{\"x\":\"a\",\"y\":\"a\"}",
            ),
            (r#"{"type": "transform", "dictionary": {"a": 1}}"#, "{\"a\":1}"),
            (
                r#"{"type": "transform", "dictionary": []  , "itemTransform": "@fail(x)"}"#,
                "[]",
            ),
            (
                r#"{"type": "transform", "keyName": "i", "itemName": "row", "dictionary": [["a"], ["b"]],
                    "itemTransform": {"type": "transform", "dictionary": "%row%", "itemTransform": ["%i%", "%key%", "%item%"]}}"#,
                "[[[0,0,\"a\"]],[[1,0,\"b\"]]]",
            ),
            (
                r#"{"type": "process", "initialValue": 0, "dictionary": [1, 2, 3], "transform": "@add(%value%,%item%)"}"#,
                "6",
            ),
            (
                r#"{"type": "process", "initialValue": "", "dictionary": {"a": "1", "b": "2"}, "transform": "%value%%key%%item%"}"#,
                "\"a1b2\"",
            ),
            (
                r#"{"type": "foreach", "from": [1, 2, 3, 4], "where": "@less(@int(1),%item%)", "top": 2}"#,
                "[2,3]",
            ),
            (
                r#"{"type": "foreach", "from": {"a": 1, "b": 2}, "where": "@equals(%key%,b)"}"#,
                "{\"b\":2}",
            ),
            (
                r#"{"type": "foreach", "from": {"a": 1, "b": 2}, "use": ["%key%", "%item%"]}"#,
                "[\"a\",1,\"b\",2]",
            ),
            (
                r#"{"type": "foreach", "from": [1, 2], "use": {"@str(%key%)": "%item%"}}"#,
                "{\"0\":1,\"1\":2}",
            ),
            (r#"{"type": "foreach", "from": [1], "use": []}"#, "[]"),
            (
                r#"{"type": "foreach", "from": [], "noMatchResult": "none"}"#,
                "\"none\"",
            ),
            (r#"{"type": "foreach", "from": {}, "use": [1]}"#, "{}"),
            (
                r#"{"type": "foreach", "key": "k", "item": "v", "from": ["a"], "use": ["%k%%v%"]}"#,
                "refused: 1:75: Param in string 'k' is not a string; write @str(…) around it",
            ),
        ],
    );
}

#[test]
fn wrong_calls_are_refused_with_their_reason_and_place() {
    each_refused(
        MACROS,
        &[
            ("\"@none\"", "1:7: Macro: 'none' not found"),
            ("\"@\"", "1:7: Macro: '' not found"),
            ("[1,\n\"@none(a)\"]", "2:1: Macro: 'none' not found"),
            ("\"%none%\"", "1:7: Param in string: 'none' not found"),
            (
                "\"50% off\"",
                "Odd number of percent signs in string around '50% off'",
            ),
            ("\"@same(a\"", "No closing bracket for call 'same(a'"),
            ("\"@same(a)b\"", "No closing bracket for call 'same(a)b'"),
            ("\"@pair((a,b)\"", "Brackets do not match: pair((a,b)"),
            (
                "\"@pair(a)\"",
                "Too few arguments for macro pair. Expected at least 2 got 1",
            ),
            (
                "\"@word(a)\"",
                "Too many arguments for macro word. Expected at most 0 got 1",
            ),
            (
                r#"{"type": "pair", "k": "a"}"#,
                "Macro call pair: 'v' parameter not found",
            ),
            ("\"@%list%\"", "Macro name is array, string expected"),
            ("\"a%two%\"", "Param in string 'two' is not a string"),
            (r#"{"%two%": 1}"#, "1:8: Expanded key is not a string"),
            (r#"{"vars": 1}"#, "vars is int64, expected object"),
            (r#"{"vars": {"a": "%b%", "b": "%a%"}}"#, "leads back to itself"),
            (
                "\"@either(@bool(0))\"",
                "Param in string: 'a' not found (in macro 'either', line: 1)",
            ),
            ("\"@transform(a)\"", "Macro: 'transform' not found"),
            ("\"@int(x)\"", "Can not cast string 'x' to int"),
            ("\"@int(@double(0.5))\"", "Can not cast double to int"),
            ("\"@bool(maybe)\"", "Can not cast string 'maybe' to boolean"),
            ("\"@str(%list%)\"", "Can not cast array to string"),
            ("\"@keys(%list%)\"", "Keys: dictionary is not object"),
            ("\"@size(%two%)\"", "size: dictionary is not object/array/string"),
            (
                "\"@contains(%two%, a)\"",
                "Contains: dictionary is int64, expected object/array/string",
            ),
            (
                r#"{"type": "merge", "params": [[], {}]}"#,
                "Merge: param 1 is not an array",
            ),
            (r#"{"type": "merge", "params": []}"#, "Merge: empty params"),
            (
                r#"{"type": "merge", "params": [1]}"#,
                "Merge: first param is not array/object/string",
            ),
            ("\"@range(@int(1), 2)\"", "Range: to is not an integer"),
            (
                "\"@range(@int(0), @int(9223372036854775807))\"",
                "touches more than 200000 values",
            ),
            (
                r#"{"type": "sort", "dictionary": [{}]}"#,
                "sort: objects have no order",
            ),
            (
                "\"@select(%object%, x)\"",
                "Select: 'x' not found, default not specified",
            ),
            (
                "\"@select(%list%, @int(3))\"",
                "Select: index 3 is out of range [0, 3)",
            ),
            (
                "\"@select(%list%, a)\"",
                "Select: dictionary is an array, key is not an integer",
            ),
            (
                "\"@select(%two%, a)\"",
                "Select: dictionary is int64, expected array/object",
            ),
            ("\"@slice(abc, a, b)\"", "Slice: from/to is not an int"),
            (
                r#"{"type": "set", "dictionary": [1], "key": 1, "value": 0}"#,
                "Set: key '1' is out of range [0..1)",
            ),
            ("\"@shuffle(a)\"", "Shuffle: argument must be an array"),
            (
                "\"@shuffle(%list%, @int(-1))\"",
                "Shuffle: seed must be a non-negative integer",
            ),
            ("\"@less(%object%, %object%)\"", "Can not compare objects"),
            ("\"@and(1, 1)\"", "and: A is string, expected bool"),
            ("\"@not(1)\"", "not: A is not bool"),
            ("\"@if(1, 2, 3)\"", "If: condition is string, expected bool"),
            ("\"@fail(do not start)\"", "1:7: do not start"),
            (r#"{"type": "fail", "msg": {"a": 1}}"#, "{\"a\":1}"),
            ("\"@add(1, @int(1))\"", "add: A is not an integer"),
            (
                "\"@mul(@int(9223372036854775807), @int(2))\"",
                "is no 64-bit integer",
            ),
            ("\"@div(@int(1), @int(0))\"", "div: B == 0"),
            ("\"@mod(@int(1), @int(0))\"", "mod: B == 0"),
            (
                "\"@div(@int(-9223372036854775808), @int(-1))\"",
                "is no 64-bit integer",
            ),
            ("\"@bitwiseLeftShift(@int(1), @int(64))\"", "is no 64-bit integer"),
            ("\"@hash(%list%)\"", "Hash: can not cast array to int or string"),
            (
                r#"{"type": "weightedHash", "dictionary": {}, "key": 1}"#,
                "WeightedHash: the sum of the weights is 0",
            ),
            (
                r#"{"type": "weightedHash", "dictionary": {"a": "1"}, "key": 1}"#,
                "WeightedHash: a weight is string, expected number",
            ),
            (
                r#"{"type": "transform", "dictionary": [1]}"#,
                "Transform: itemTransform is required for array",
            ),
            (
                r#"{"type": "transform", "itemTransform": 1}"#,
                "Transform: 'dictionary' not found",
            ),
            (
                r#"{"type": "transform", "dictionary": 1}"#,
                "Transform: dictionary is not array/object",
            ),
            (
                r#"{"type": "transform", "dictionary": {"a": 1}, "keyTransform": 1}"#,
                "Transformed key is not array/string",
            ),
            (
                r#"{"type": "transform", "dictionary": {}, "keyName": "item"}"#,
                "'item' already exists in local scope",
            ),
            // A macro does not know what holds where it is called.
            (
                r#"{"type": "transform", "dictionary": [1], "itemTransform": "@either(@bool(0))"}"#,
                "Param in string: 'a' not found",
            ),
            (
                r#"{"type": "process", "initialValue": 1, "dictionary": []}"#,
                "Process: 'transform' not found",
            ),
            (
                r#"{"type": "foreach", "from": [1], "where": 1}"#,
                "Foreach: expanded 'where' is not boolean",
            ),
            (
                r#"{"type": "foreach", "from": [1], "top": -1}"#,
                "Foreach: top should be a non-negative integer",
            ),
            (
                r#"{"type": "foreach", "from": [1], "use": 1}"#,
                "Foreach: expanded item is not object/array",
            ),
            (r#"{"type": "foreach", "from": [{}, []], "use": "%item%"}"#, ""),
            (
                r#"{"type": "foreach", "from": [[1], {"a": 1}], "use": "%item%"}"#,
                "Foreach: expanded item is not an array",
            ),
            (
                "\"@import(no/such/file)\"",
                "Import 'no/such/file': cannot be read: ",
            ),
        ],
    );
}

#[test]
fn wrong_definitions_are_refused_with_their_reason_and_place() {
    let rows = [
        ("1", "2:11: config macros is not an array/object"),
        ("{\"a\": 1}", "'a' macro definition is not an object"),
        (
            "{\"a\": {\"result\": 1}}",
            "'a' macro definition: 'type' not found",
        ),
        ("{\"a\": {\"type\": \"x\"}}", "Unknown macro definition type: x"),
        (
            "{\"a\": {\"type\": \"macroDef\"}}",
            "Macro definition: 'result' not found",
        ),
        (
            "{\"a\": {\"type\": \"constDef\"}}",
            "constDef: 'result' not found",
        ),
        (
            "{\"a\": {\"type\": \"macroDef\", \"params\": 1, \"result\": 1}}",
            "'a' macroDef params is not an array",
        ),
        (
            "{\"a\": {\"type\": \"macroDef\", \"params\": [1], \"result\": 1}}",
            "Macro param is int64, expected string/object",
        ),
        (
            "{\"a\": {\"type\": \"macroDef\", \"params\": [\"p\", \"p\"], \"result\": 1}}",
            "macro 'a' has the parameter 'p' twice",
        ),
        (
            "{\"a\": {\"type\": \"macroDef\", \"params\": [{\"name\": \"p\", \"default\": 1}, \"q\"], \"result\": 1}}",
            "Incorrect defaults/optionals in macro a",
        ),
        (
            "{\"a\": {\"type\": \"macroDef\", \"params\": [{\"name\": \"p\", \"default\": 1, \"optional\": false}], \"result\": 1}}",
            "the parameter 'p' has a default, and is not optional",
        ),
    ];
    let failed = rows.iter().filter_map(|(macros, expected)| {
        let found = value(macros, "1").map_or_else(|error| error, |made| format!("accepted: {made}"));
        (!found.contains(expected)).then(|| format!("{macros}\n  expected {expected}\n  found    {found}"))
    });
    let failed: Vec<String> = failed.collect();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn definitions_in_lists_may_use_those_before_them() {
    let macros = r#"[
        {"a": {"type": "constDef", "result": "A"}},
        [{"type": "merge", "params": [{"m": {"type": "macroDef", "params": ["p"], "result": "%b%%p%"}},
            {"b": {"type": "constDef", "result": "%a%b"}}]}],
        {"@m(x)": {"type": "constDef", "result": "@m(d)"}}
    ]"#;
    each_value(
        macros,
        &[("[\"%b%\", \"%Abx%\", \"@m(%a%)\"]", "[\"Ab\",\"Abd\",\"AbA\"]")],
    );
}

#[test]
fn a_definition_takes_the_place_of_a_built_in_one() {
    let macros = r#"{"int": {"type": "macroDef", "params": ["a"], "result": "mine %a%"}}"#;
    each_value(macros, &[("\"@int(5)\"", "\"mine 5\"")]);
}

#[test]
fn places_are_those_where_values_are_written() {
    let text = "{\"macros\": {\"m\": {\"type\": \"macroDef\", \"params\": [\"p\"],\n  \"result\": {\"type\": \"R\",\n   \"v\": \"%p%\"}}},\n\n\"x\": \"@m(1)\"}";
    let item = Item::of(expand(text).unwrap(), None).unwrap();
    let Json::Map(map) = item.value else { panic!() };
    let x = map.get("x").unwrap();
    let Json::Map(inner) = &x.value else { panic!() };
    let line = |key: &str| inner.get(key).unwrap().at.line;
    assert_eq!((x.at.line, line("type"), line("v")), (2, 2, 5));
}

#[test]
fn imports_are_read_once_from_the_folder_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("list.json", "// servers\n[\"a:%PORT%\", \"@up(b)\",]");
    write("self.json", "\"@import(self.json)\"");
    write("bad.json", "{\n\"a\": }");
    write("wrong.json", "[1,\n \"@none\"]");
    let constants = constants();
    let of = |text: &str| {
        let mut preprocessor = Preprocessor::new(&constants, Origin::Files, Some(folder.path().to_owned()));
        let expanded = preprocessor.expand(text, &mut Reading::default());
        let shown = expanded.map(|node| Item::of(node, None).unwrap().value.to_string());
        let files = preprocessor.into_files().into_keys();
        let files: Vec<String> = files
            .filter_map(|file| Some(file.file_name()?.to_string_lossy().into_owned()))
            .collect();
        (shown.map_err(|diagnostic| diagnostic.to_string()), files)
    };
    let up = r#""macros": {"up": {"type": "macroDef", "params": ["p"], "result": "%p%%p%"}}"#;
    let (found, files) = of(&format!(
        "{{{up}, \"x\": [\"@import(list.json)\", \"@import(list.json)\"]}}"
    ));
    assert_eq!(found.unwrap(), r#"{"x":[["a:11211","bb"],["a:11211","bb"]]}"#);
    assert_eq!(files, ["list.json"]);

    let absolute = folder.path().join("list.json").display().to_string();
    let (found, _) = of(&format!("{{{up}, \"x\": \"@import(file:{absolute})\"}}"));
    assert_eq!(found.unwrap(), r#"{"x":["a:11211","bb"]}"#);

    let (found, files) = of("{\"x\": \"@import(none.json, @str(d))\"}");
    assert_eq!(found.unwrap(), r#"{"x":"d"}"#);
    assert_eq!(files, ["none.json"], "a file that may come is followed");

    let refused = [
        (
            "self.json",
            "1:7: Import 'self.json': 1:1: Import 'self.json': the file imports itself",
        ),
        ("bad.json", "1:7: Import 'bad.json': 2:6: not JSON"),
        (
            "wrong.json",
            "1:7: Import 'wrong.json': 2:2: Macro: 'none' not found",
        ),
        ("none.json", "1:7: Import 'none.json': cannot be read"),
        ("/", "Import '/': cannot be read"),
    ];
    for (file, expected) in refused {
        let message = of(&format!("{{\"x\": \"@import({file})\"}}")).0.unwrap_err();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn what_grows_without_bound_is_refused_in_bounded_time() {
    let ten = |inner: &str| format!("[{}]", vec![format!("\"{inner}\""); 10].join(","));
    let tower = |levels: usize| {
        let level = |i: usize| {
            let result = ten(&format!("@m{}", i + 1));
            format!("\"m{i}\": {{\"type\": \"macroDef\", \"result\": {result}}}")
        };
        let all: Vec<String> = (0..levels).map(level).collect();
        format!(
            "{{{}, \"m{levels}\": {{\"type\": \"macroDef\", \"result\": 1}}}}",
            all.join(",")
        )
    };
    let shared = |levels: usize| {
        let level = |i: usize| {
            let result = ten(&format!("%m{}%", i + 1));
            format!("\"m{i}\": {{\"type\": \"constDef\", \"result\": {result}}}")
        };
        let all: Vec<String> = (0..levels).map(level).collect();
        format!(
            "{{{}, \"m{levels}\": {{\"type\": \"constDef\", \"result\": 1}}}}",
            all.join(",")
        )
    };
    let cycle = "{\"m\": {\"type\": \"macroDef\", \"result\": \"@m\"}}".to_owned();
    let ring = "{\"m\": {\"type\": \"constDef\", \"result\": \"%m%\"}}".to_owned();
    let doubling = |start: &str, transform: &str| {
        format!(
            r#"{{"type": "process", "initialValue": {start}, "dictionary": "@range(@int(1),@int(100))", "transform": {transform}}}"#
        )
    };
    let rows: Vec<(String, String, &str)> = vec![
        (tower(30), "\"@m0\"".into(), "touches more than 200000 values"),
        (shared(30), "\"%m0%\"".into(), "larger than 5000000 values"),
        (cycle, "\"@m\"".into(), "Too many nested macros. Check for cycles."),
        (ring, "\"%m%\"".into(), "Const 'm' leads back to itself"),
        (String::new(), doubling("\"ab\"", "\"%value%%value%\""), "more than 200000 values"),
        (String::new(), doubling("[1]", "[\"%value%\", \"%value%\"]"), "larger than 5000000 values"),
        (
            String::new(),
            doubling("[1]", r#"{"type": "merge", "params": ["%value%", "%value%"]}"#),
            "00000 values",
        ),
        (
            String::new(),
            r#"{"type": "process", "initialValue": 0, "dictionary": "@range(@int(1),@int(300))", "transform": ["%value%"]}"#
                .into(),
            "nested more than 250 deep",
        ),
        (
            String::new(),
            r#"{"type": "transform", "dictionary": "@range(@int(1),@int(900))",
                "itemTransform": {"type": "transform", "dictionary": "@range(@int(1),@int(900))", "itemTransform": 0}}"#
                .into(),
            "touches more than 200000 values",
        ),
        (
            String::new(),
            r#"{"vars": {"big": "@range(@int(1),@int(9000))"}, "type": "foreach", "from": "@range(@int(1),@int(9000))",
                "where": "@contains(%big%, @int(0))"}"#
                .into(),
            "touches more than 200000 values",
        ),
    ];
    for (macros, x, expected) in rows {
        let begun = Instant::now();
        let found = value(&macros, &x).map_or_else(|error| error, |_| "accepted".to_owned());
        assert!(found.contains(expected), "{x}: {found}");
        let (x, took) = (crate::config::document::shortened(&x), begun.elapsed());
        assert!(took.as_secs() < 5, "{x}: {took:?}");
    }
}

#[test]
fn nesting_up_to_the_limit_fits_on_a_threads_stack() {
    // 245 values, one within another, all read by the functions that recurse most.
    let deep = |levels: usize| {
        let mut text = "1".to_owned();
        for _ in 0..levels {
            text = format!("{{\"type\": \"define\", \"result\": {text}}}");
        }
        text
    };
    assert_eq!(value("", &deep(245)), Ok("1".to_owned()));
    assert!(value("", &deep(260)).unwrap_err().contains("nest"));
    let text = format!("\"{}x{}\"", "@str(".repeat(245), ")".repeat(245));
    assert_eq!(value("", &text), Ok("\"x\"".to_owned()));
    let text = format!("\"{}x{}\"", "@str(".repeat(1_000), ")".repeat(1_000));
    assert!(value("", &text).unwrap_err().contains("Too many nested macros"));
    let text = format!("\"{}x{}\"", "@if(@bool(1),".repeat(200), ",)".repeat(200));
    assert_eq!(value("", &text), Ok("\"x\"".to_owned()));
}
