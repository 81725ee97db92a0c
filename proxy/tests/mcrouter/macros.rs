//! Configurations that are written with macros, constants, imports and files of pools.

use std::{fs, time::Duration};

use proxima::{config::schema::*, frontdoor::ConfigSource as _};

use crate::{at, parse, refused, rows::each_row, run};

fn addresses(config: &Config, pool: &str) -> Vec<String> {
    let servers = config.pools[pool].source.fixed().unwrap();
    servers.iter().map(|server| server.address.clone()).collect()
}

#[test]
fn a_configuration_with_macros_is_read_as_the_one_that_is_written_out() {
    let written = r#"{
      "pools": {
        "east": {"servers": ["e0:11211", "e1:11211"], "server_timeout": 50},
        "west": {"servers": ["w0:11211", "w1:11211"], "server_timeout": 150}
      },
      "routes": [
        {"aliases": ["/east/main/"], "route": {"type": "OperationSelectorRoute", "default_policy": "PoolRoute|east",
          "operation_policies": {"delete": {"type": "AllSyncRoute", "children": ["PoolRoute|east", "PoolRoute|west"]}}}},
        {"aliases": ["/west/main/"], "route": {"type": "OperationSelectorRoute", "default_policy": "PoolRoute|west",
          "operation_policies": {"delete": {"type": "AllSyncRoute", "children": ["PoolRoute|east", "PoolRoute|west"]}}}}
      ]}"#;
    let macros = r#"{
      // What differs from region to region.
      "macros": {
        "regions": {"type": "constDef", "result": {"east": {"letter": "e", "ms": 50}, "west": {"letter": "w", "ms": 150}}},
        "pool": {"type": "macroDef", "params": ["region", {"name": "port", "default": "11211"}], "result": {
          "servers": {"type": "transform", "dictionary": "@range(@int(0),@int(1))",
            "itemTransform": {"type": "merge", "params": ["%letter%", "@str(%item%)", ":%port%"]},
            "vars": {"letter": "@select(@select(%regions%,%region%),letter)"}},
          "server_timeout": "@select(@select(%regions%,%region%),ms)"
        }},
        "both": {"type": "macroDef", "params": ["local"], "result": {
          "type": "OperationSelectorRoute", "default_policy": "PoolRoute|%local%",
          "operation_policies": {"delete": {"type": "AllSyncRoute",
            "children": {"type": "foreach", "from": "%regions%", "use": ["PoolRoute|%key%"]}}}}}
      },
      "pools": {"type": "transform", "dictionary": "%regions%", "itemTransform": "@pool(%key%)"},
      "routes": {"type": "foreach", "from": "%regions%",
        "use": [{"aliases": ["/%key%/main/"], "route": "@both(%key%)"}]},
    }"#;
    let of = |text: &str| {
        let arguments = ["-p1", "--route-prefix=/east/main/", &format!("--config={text}")];
        run(&arguments).unwrap().loaded.config
    };
    let (macros, written) = (of(macros), of(written));
    assert_eq!(macros.pools, written.pools);
    // Names that the door makes for routes tell the line, which differs.
    assert_eq!(macros.routes.len(), written.routes.len());
    assert_eq!(addresses(&macros, "west"), ["w0:11211", "w1:11211"]);
    assert_eq!(macros.pools["east"].timeout, Duration::from_millis(50));
}

#[test]
fn constants_of_the_command_line_hold_in_files_of_pools_too() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pool.json");
    fs::write(
        &file,
        r#"{"macros": {"h": {"type": "constDef", "result": "host"}}, "servers": ["%h%:%PORT%", "%h%:@"],}"#,
    )
    .unwrap();
    let text = format!(
        r#"{{"pools": {{"A": "file:{}"}}, "route": "PoolRoute|A"}}"#,
        file.display()
    );
    let arguments = |params: &str| ["-p1".to_owned(), format!("--config={text}"), params.to_owned()];
    let start = |params: &str| {
        let arguments = arguments(params);
        run(&arguments.each_ref().map(String::as_str))
    };
    let message = start("--config-params=PORT:5").unwrap_err().to_string();
    assert!(message.contains("invalid server address `host:@`"), "{message}");
    fs::write(&file, r#"{"servers": ["h:%PORT%", "h:%other%"],}"#).unwrap();
    let config = start("--config-params=PORT:5,other:6").unwrap().loaded.config;
    assert_eq!(addresses(&config, "A"), ["h:5", "h:6"]);
    let message = start("--config-params=PORT:5").unwrap_err().to_string();
    let expected = "pool.json:1:26: Param in string: 'other' not found";
    assert!(message.contains(expected), "{message}");
    assert_eq!(start("--config-params=PORT").unwrap_err().exit_code(), 3);
}

#[test]
fn constants_that_are_always_there_are_those_of_mcrouter() {
    let rows = [
        ("%default-route%", "/r/c/"),
        ("%default-region%", "r"),
        ("%default-cluster%", "c"),
        ("%router-name%", "5"),
        ("%service-name%", "mcrouter"),
        ("%router-info-name%", "Memcache"),
        ("@str(%num-proxies%)", "3"),
        ("@str(%service-router-capable%)", "0"),
        ("%mcr_opts-server_timeout_ms%", "250"),
        ("%mcr_opts-asynclog_disable%", "1"),
        ("@if(@isInt(%hostid%), number, none)", "number"),
        ("@if(@equals(%num-proxies%, @int(3)), three, other)", "three"),
        ("%mine%", "a:b"),
    ];
    each_row(rows, |&(written, expected)| {
        let text = format!(r#"{{"route": {{"type": "ErrorRoute", "response": "{written}"}}}}"#);
        let arguments = [
            "-p5,6",
            "-R/r/c/",
            "--num-proxies=3",
            "-t250",
            "--asynclog-disable",
            "--config-params",
            "mine:a:b",
            &format!("--config={text}"),
        ];
        let config = run(&arguments).unwrap().loaded.config;
        let Route::Named(root) = &config.listeners[0].route else {
            panic!()
        };
        let Route::Keyed(_, routes, _) = &config.routes[root] else {
            panic!()
        };
        let Route::Leaf(Leaf::Error(error)) = at(routes, "/r/c/") else {
            panic!("{written}")
        };
        assert_eq!(error.text, expected, "{written}");
    });
}

#[test]
fn imported_files_are_followed_like_the_file_itself() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(
        path("config.json"),
        r#"{"pools": {"A": {"servers": "@import(lists/a.json)"}, "B": {"servers": "@import(b.json, @split(b:1,x))"}},
            "route": "PoolRoute|A"}"#,
    )
    .unwrap();
    fs::create_dir(path("lists")).unwrap();
    fs::write(path("lists/a.json"), r#"["a:1"]"#).unwrap();
    let config = format!("--config=file:{}", path("config.json").display());
    let mcrouter = run(&["-p1", &config]).unwrap();
    assert_eq!(
        mcrouter.loaded.files_watched,
        ["config.json", "b.json", "lists/a.json"].map(path)
    );
    assert_eq!(addresses(&mcrouter.loaded.config, "B"), ["b:1"]);
    fs::write(path("lists/a.json"), r#"["a:1", "a:2"]"#).unwrap();
    fs::write(path("b.json"), r#"["b:2"]"#).unwrap();
    let loaded = mcrouter.load().unwrap();
    assert_eq!(addresses(&loaded.config, "A"), ["a:1", "a:2"]);
    assert_eq!(addresses(&loaded.config, "B"), ["b:2"]);
    assert_ne!(loaded.version_hash, mcrouter.loaded.version_hash);
    fs::write(path("b.json"), "[\n1").unwrap();
    assert_eq!(
        addresses(&mcrouter.load().unwrap().config, "B"),
        ["b:1"],
        "the default"
    );
    fs::write(path("lists/a.json"), "[\n1").unwrap();
    let message = mcrouter.load().unwrap_err().to_string();
    let expected = "config.json:1:29: Import 'lists/a.json': 1:1: not JSON";
    assert!(message.contains(expected), "{message}");
}

#[test]
fn mistakes_within_macros_name_the_line_of_the_macro() {
    let text = "{\"macros\": {\"route\": {\"type\": \"macroDef\", \"params\": [\"x\"],\n \"result\": {\"type\": \"LoggingRoute\",\n   \"target\": {\n     \"type\": \"NoRoute\", \"x\": \"%x%\"}}}},\n\"route\": \"@route(1)\"}";
    assert!(
        refused(text).contains("Unknown RouteHandle: NoRoute line: 4"),
        "{}",
        refused(text)
    );
    let text = text.replace("%x%", "@select(a)");
    let message = refused(&text);
    assert!(
        message.contains(":4:30: Too few arguments for macro select"),
        "{message}"
    );
    assert!(message.ends_with("(in macro 'route', line: 5)"), "{message}");
}

#[test]
fn a_thousand_pools_with_ten_thousand_servers_are_one_macro() {
    let text = r#"{
      "macros": {
        "name": {"type": "macroDef", "params": ["n"], "result": "pool@str(%n%)"},
        "pool": {"type": "macroDef", "params": ["n"], "result": {
          "server_timeout": "@int(500)",
          "servers": {"type": "transform", "dictionary": "@range(@int(1),@int(10))",
            "itemTransform": {"type": "merge", "params": ["10.", "@str(@div(%n%,@int(256)))", ".",
              "@str(@mod(%n%,@int(256)))", ".", "@str(%item%)", ":11211"]}}}}
      },
      "pools": {"type": "foreach", "from": "@range(@int(0),@int(999))",
        "use": {"type": "define", "vars": {"p": {"type": "merge", "params": ["p", "@str(%item%)"]}},
          "result": {"%p%": "@pool(%item%)"}}},
      "route": {"type": "PrefixSelectorRoute", "wildcard": "NullRoute", "policies":
        {"type": "foreach", "from": "@range(@int(0),@int(999))",
          "use": {"type": "define", "vars": {"p": {"type": "merge", "params": ["p", "@str(%item%)"]}},
            "result": {"%p%:": "PoolRoute|%p%"}}}}
    }"#;
    let config = parse(text).unwrap().loaded.config;
    assert_eq!(config.pools.len(), 1_000);
    assert_eq!(addresses(&config, "p999")[9], "10.3.231.10:11211");
}
