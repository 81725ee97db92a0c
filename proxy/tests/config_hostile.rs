//! A reader answers every text: it does not panic or exhaust the stack, and it ends.

use std::{fs, path::Path};

use proptest::prelude::*;
use proxima::{
    config::{self, source::file as servers},
    frontdoor::{mcrouter, nutcracker},
};

const YAML: &str = r#"
listeners:
  - {address: "127.0.0.1:11211", route: main}
pools:
  cache: &pool
    servers: [10.0.0.1:11211, {address: 10.0.0.2:11211, weight: 2, name: b, zone: eu-1a}]
    hash: {algorithm: ketama_twemproxy, key_hash: md5, tag: "{}"}
    timeout: 1s
  spare: *pool
routes:
  main:
    by_operation:
      read: {failover: {children: [{nearest: cache}, spare], errors: [timeout], limit: {rate: 0.5}}}
      default: {all_sync: cache}
limits: {clients: 10000, value_size: 64MiB, idle: 0s}
"#;

const JSON: &str = r#"{
  "macros": {"port": {"type": "constDef", "result": "1"},
    "host": {"type": "macroDef", "params": ["h", {"name": "p", "default": "2"}], "result": "%h%:%p%"}},
  "pools": {"A": {"servers": ["@host(a, %port%)", "[::1]:2:ascii:plain"], "weights": [1, 0.5]}, "B": {"inherit": "A"},
    "C": {"servers": {"type": "transform", "dictionary": "@range(@int(1),@int(3))", "itemTransform": "@host(c, @str(%item%))"}}},
  "named_handles": [{"name": "n", "type": "AllSyncRoute", "children": "Pool|A"}],
  "routes": [{"aliases": ["/././"], "route": {"type": "OperationSelectorRoute", "operation_policies": {
    "get": "FailoverRoute|Pool|A", "set": {"type": "PoolRoute", "pool": "B", "hash": {"hash_func": "Crc32", "salt": "s"}},
    "delete": {"type": "FailoverRoute", "children": ["n", "ErrorRoute|x"], "failover_errors": {"gets": ["tko"]}},
    "incr": {"type": "MigrateRoute", "from": "n", "to": "LatestRoute|Pool|B", "start_time": 5, "interval": 1},
    "add": {"type": "PoolRoute", "pool": "A", "max_outstanding": 3, "rates": {"gets_rate": 1},
      "shard_splits": {"1": 2, "2": {"old_split_size": 1, "new_split_size": 3, "fanout_deletes": true}},
      "shadows": [{"target": "n", "index_range": [0, 1], "key_fraction_range": [0, 0.5]}]},
    "cas": {"type": "KeySplitRoute", "destination": "n", "replicas": 2, "first_hit": true},
  }}}]
}"#;

const POOLS: &str = r#"alpha:
  listen: 127.0.0.1:22121
  hash: fnv1a_64
  hash_tag: "{}"
  distribution: ketama
  auto_eject_hosts: true
  timeout: 400
  servers:
   - 127.0.0.1:11211:1
   - /run/memcached.sock:2 second
beta:
  listen: /run/beta.sock 0660
  redis: true
  redis_auth: secret
  servers:
   - "::1:6379:1 third"
"#;

const SERVERS: &str = "# servers\n10.0.0.1:11211 2 a zone=x\n[::1]:1 0.5\nunix:/run/m c\n";

fn yaml(text: &str) {
    if let Err(error) = config::parse(text, Path::new("F")) {
        assert!(error.to_string().starts_with("F:"), "{error}");
    }
}

fn json(text: &str) {
    // As an argument the text must not begin like the name of a file.
    let _ = mcrouter::start(["-p1".to_owned(), format!("--config= {text}")]);
}

/// A value of mcrouter's language, made of what its macros are made of.
fn expression() -> impl Strategy<Value = String> {
    const WORDS: [&str; 48] = [
        "@",
        "%",
        "\\\\",
        "(",
        ")",
        ",",
        " ",
        "a",
        "l",
        "o",
        "%a%",
        "%l%",
        "%o%",
        "%key%",
        "%item%",
        "%value%",
        "%r%",
        "@int(2)",
        "@m(",
        "@two(",
        "@range(@int(1),@int(9))",
        "@select(%l%,",
        "@if(",
        "@bool(1)",
        "@slice(",
        "@sort(",
        "@merge(",
        "@str(",
        "@keys(%o%)",
        "@set(",
        "@add(@int(3),",
        "@div(",
        "@hash(",
        "@import(",
        "@define(",
        "@less(",
        "@contains(",
        "@split(",
        "@shuffle(",
        "@bitwiseLeftShift(@int(1),",
        "@equals(",
        "@fail(x)",
        "@defined(",
        "@isLocalIp(",
        "@size(",
        "@and(",
        "@double(",
        "ü",
    ];
    const KEYS: [&str; 24] = [
        "type",
        "vars",
        "dictionary",
        "params",
        "itemTransform",
        "keyTransform",
        "transform",
        "initialValue",
        "from",
        "to",
        "use",
        "where",
        "top",
        "key",
        "item",
        "result",
        "value",
        "A",
        "B",
        "condition",
        "is_true",
        "noMatchResult",
        "macros",
        "seed",
    ];
    const TYPES: [&str; 12] = [
        "transform",
        "process",
        "foreach",
        "merge",
        "define",
        "select",
        "if",
        "m",
        "two",
        "macroDef",
        "constDef",
        "set",
    ];
    let word = prop::sample::select(WORDS.to_vec());
    let text = prop::collection::vec(word, 0..8).prop_map(|words| format!("\"{}\"", words.concat()));
    let leaf = prop_oneof![
        4 => text,
        1 => (-3..4_i32).prop_map(|number| number.to_string()),
        1 => Just("true".to_owned()),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        let key = prop::sample::select(KEYS.to_vec());
        let entry = (key, inner.clone()).prop_map(|(key, value)| format!("\"{key}\": {value}"));
        let kind = prop::sample::select(TYPES.to_vec());
        prop_oneof![
            prop::collection::vec(inner, 0..5).prop_map(|items| format!("[{}]", items.join(","))),
            (kind, prop::collection::vec(entry, 0..6)).prop_map(|(kind, entries)| format!(
                "{{\"type\": \"{kind}\", {}}}",
                entries.join(",")
            )
            .replace(", }", "}")),
        ]
    })
}

fn pools(text: &str) {
    if let Err(error) = nutcracker::parse(text, Path::new("F")) {
        assert!(error.to_string().starts_with("F:"), "{error}");
    }
}

/// A text with a few changes: bytes are overwritten, and parts are left out, doubled or moved.
fn mutated(text: &'static str) -> impl Strategy<Value = String> {
    let change = (
        0..4_u8,
        any::<prop::sample::Index>(),
        any::<prop::sample::Index>(),
        any::<u8>(),
    );
    prop::collection::vec(change, 1..6).prop_map(move |changes| {
        let mut bytes = text.as_bytes().to_vec();
        for (kind, one, other, byte) in changes {
            if bytes.is_empty() {
                break;
            }
            let (one, other) = (one.index(bytes.len()), other.index(bytes.len()));
            let range = one.min(other)..one.max(other);
            match kind {
                0 => bytes[one] = byte,
                1 => drop(bytes.drain(range)),
                2 => {
                    let part = bytes[range].to_vec();
                    bytes.splice(one..one, part);
                }
                _ => {
                    const MARKS: &[u8] = b"{}[]:,\"'|&*#%@\\\n\t -!>~0";
                    bytes.insert(one, MARKS[usize::from(byte) % MARKS.len()]);
                }
            }
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_answered_without_a_panic(text in "\\PC*|[ -~\n]*") {
        yaml(&text);
        json(&text);
        let _ = servers::parse(&text);
    }

    #[test]
    fn a_mutated_configuration_is_answered_without_a_panic(text in mutated(YAML)) {
        yaml(&text);
    }

    #[test]
    fn a_mutated_twemproxy_file_is_answered_without_a_panic(text in mutated(POOLS)) {
        pools(&text);
    }

    #[test]
    fn any_twemproxy_arguments_are_answered_without_a_panic(arguments in prop::collection::vec("(--?[a-zA-Z-]{0,12}(=[a-z0-9:/,]{0,8})?|[ -~]{0,12})", 0..6)) {
        let _ = nutcracker::start(arguments);
    }

    #[test]
    fn a_mutated_mcrouter_file_is_answered_without_a_panic(text in mutated(JSON)) {
        json(&text);
    }

    #[test]
    fn a_mutated_file_of_servers_is_answered_without_a_panic(text in mutated(SERVERS)) {
        let _ = servers::parse(&text);
    }

    #[test]
    fn any_mcrouter_arguments_are_answered_without_a_panic(arguments in prop::collection::vec("(--?[a-z-]{0,12}(=[a-z0-9:/,]{0,8})?|[ -~]{0,12})", 0..6)) {
        let _ = mcrouter::start(arguments);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn any_value_with_macros_is_answered_without_a_panic(value in expression(), defined in expression()) {
        json(&format!(
            "{{\"macros\": {{\"m\": {{\"type\": \"macroDef\", \"params\": [\"a\"], \"result\": {defined}}},
            \"two\": {{\"type\": \"macroDef\", \"params\": [\"a\", {{\"name\": \"l\", \"default\": [1]}}], \"result\": [\"%a%\", \"%l%\"]}},
            \"l\": {{\"type\": \"constDef\", \"result\": [1, \"x\"]}}, \"o\": {{\"type\": \"constDef\", \"result\": {{\"a\": 1}}}},
            \"r\": {{\"type\": \"constDef\", \"result\": {defined}}}}},
            \"x\": {value}, \"route\": \"NullRoute\"}}"
        ));
    }
}

#[test]
fn the_texts_before_mutation_are_accepted() {
    config::parse(YAML, Path::new("F")).unwrap();
    mcrouter::start(["-p1".to_owned(), format!("--config={JSON}")]).unwrap();
    nutcracker::parse(POOLS, Path::new("F")).unwrap();
    servers::parse(SERVERS).unwrap();
}

#[test]
fn nesting_is_bounded_before_the_stack_is() {
    let around = "listeners: [{address: 127.0.0.1:1, route: ";
    for depth in [100, 1_000, 100_000] {
        let (open, close) = ("{failover: [".repeat(depth), "]}".repeat(depth));
        yaml(&format!("{around}{open}embedded{close}}}]"));
        yaml(&format!("{around}{}embedded", "{log: ".repeat(depth)));
        yaml(&"- ".repeat(depth));
        yaml(&"? ".repeat(depth));
        yaml(&"[".repeat(depth));
        yaml(&"{".repeat(depth));
        json(&format!(
            "{{\"route\": {}\"NullRoute\"{}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        ));
        json(&format!(
            "{{\"route\": \"{}NullRoute\"}}",
            "LoggingRoute|".repeat(depth)
        ));
        let handle = "{\"type\": \"LoggingRoute\", \"target\": ";
        json(&format!(
            "{{\"route\": {}\"NullRoute\"{}}}",
            handle.repeat(depth),
            "}".repeat(depth)
        ));
    }
    // Every reader and check walks the deepest configuration that is allowed.
    let (open, close) = ("{log: ".repeat(60), "}".repeat(60));
    config::parse(&format!("{around}{open}embedded{close}}}]"), Path::new("F")).unwrap();
    json(&format!(
        "{{\"route\": \"{}NullRoute\"}}",
        "LoggingRoute|".repeat(240)
    ));
    let chain: String = (0..2_000)
        .map(|i| format!("\"h{i}\": \"LoggingRoute|h{}\",", i + 1))
        .collect();
    json(&format!(
        "{{\"named_handles\": {{{chain} \"h2000\": \"NullRoute\"}}, \"route\": \"h0\"}}"
    ));
}

#[test]
fn aliases_do_not_multiply_without_bound() {
    let mut text = String::from("a: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..30 {
        let ten = format!("*a{}, ", i - 1).repeat(10);
        text.push_str(&format!("b{i}: &a{i} [{ten}]\n"));
    }
    let message = config::parse(&text, Path::new("F")).unwrap_err().to_string();
    assert!(message.contains("aliases counted in full"), "{message}");
}

#[test]
fn lists_of_pools_do_not_multiply_without_bound() {
    let servers = vec!["\"a:1\""; 5_000].join(",");
    let pools = vec!["\"Pool|A\""; 5_000].join(",");
    let text = format!(
        "{{\"pools\": {{\"A\": {{\"servers\": [{servers}]}}}}, \"route\": {{\"type\": \"AllSyncRoute\", \"children\": [{pools}]}}}}"
    );
    let exit = mcrouter::start(["-p1".to_owned(), format!("--config={text}")]).unwrap_err();
    assert!(
        exit.to_string()
            .contains("more than 100000 route handles in one list"),
        "{exit}"
    );
}

#[test]
fn devices_and_folders_as_configurations_are_refused() {
    for path in ["/dev/zero", "/", "/no/such/file"] {
        let message = config::load(Path::new(path)).unwrap_err().to_string();
        assert!(message.contains("cannot be read"), "{message}");
        servers::load(Path::new(path)).unwrap_err();
    }
    let latin1 = std::env::temp_dir().join(format!("proxima-latin1-{}", std::process::id()));
    fs::write(&latin1, b"listeners: # \xe9\n").unwrap();
    let message = config::load(&latin1).unwrap_err().to_string();
    fs::remove_file(&latin1).unwrap();
    assert!(message.contains("cannot be read"), "{message}");
}
