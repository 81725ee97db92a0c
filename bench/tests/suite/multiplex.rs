//! Many clients of MySQL: all tables, against a real server, directly and behind HAProxy.

use std::process::Command;

use super::common::run;

#[test]
fn every_table_has_its_figures_and_no_errors() {
    for program in ["mariadbd", "haproxy"] {
        if Command::new(program).arg("--version").output().is_err() {
            eprintln!("skipped: {program} is not installed");
            return;
        }
    }
    let (output, json) = run(&[
        "multiplex",
        "--contender=haproxy",
        "--rounds=1",
        "--idle-rounds=1",
        "--duration=100ms",
        "--paced=1s",
        "--clients=30",
        "--idle=60",
        "--quiet",
        "--json=-",
    ]);
    assert!(output.status.success(), "{output:?}");
    let tables = json["tables"].as_array().expect("a list of tables");
    assert_eq!(tables.len(), 4);
    for table in tables {
        let names = table["figures"].as_array().expect("a list of figures");
        for way in table["ways"].as_array().expect("a list of ways") {
            assert!(way["failure"].is_null() && way["first_error"].is_null(), "{way}");
            let round = way["rounds"][0].as_array().expect("the figures of a round");
            assert_eq!(round.len(), names.len());
            let figure = |name: &str| {
                let place = names.iter().position(|figure| figure["name"] == name);
                place.and_then(|place| round[place].as_f64())
            };
            if let Some(connections) = figure("server connections, requests") {
                assert_eq!(connections, 30.0, "each client has a connection of its own");
                assert_eq!(figure("errors"), Some(0.0));
            }
            if let Some(rate) = figure("requests a second") {
                assert!(
                    rate > 0.0 && figure("server CPU, µs a request") > Some(0.0),
                    "{way}"
                );
            }
        }
    }
}
