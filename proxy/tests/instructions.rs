//! The user-space instructions of a request, counted by callgrind. The number does not depend on the
//! machine's load.
//!
//! `tests/instructions.json` holds the numbers; this test is red when one grows by more than 2 %, and says so
//! when one shrinks by as much. After an intended change: `PROXIMA_UPDATE=1 cargo test --test instructions`.
//!
//! The number depends on the code alone, because:
//! * it is the difference between two numbers of rounds, so the start cancels out;
//! * of several counts the least is taken, as the seeds of hash tables are random;
//! * the build has no flags from the environment, the baseline CPU (x86-64), a fixed number of codegen units, and
//!   is not incremental;
//! * glibc's memcpy and memset are pinned to their SSE2 variants by `GLIBC_TUNABLES`;
//! * memchr uses AVX2 at run time, which valgrind supports. A host without AVX2 gets another number and is
//!   not measured.
#![allow(clippy::disallowed_methods)]
#![cfg(target_arch = "x86_64")]

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

const TOLERANCE: f64 = 0.02;
const SCENARIOS: [&str; 18] = [
    "1-at-a-time",
    "pipelines-of-16",
    "gets-of-8-keys",
    "values-of-32-KiB",
    "near",
    "copies",
    "embedded",
    "redis-1-at-a-time",
    "redis-pipelines-of-16",
    "redis-embedded",
    "reads-of-one-copy",
    "reads-in-a-fleet",
    "near-cache",
    "redis-near-cache",
    "near-cache-misses",
    "redis-near-cache-misses",
    "near-cache-writes",
    "redis-near-cache-writes",
];
/// A read in a fleet compares one number more.
const FLEET: f64 = 0.01;
const ROUNDS: [usize; 2] = [11, 121];
/// So often a number that has grown is counted.
const TRIES: usize = 5;
const TUNABLES: &str = "glibc.cpu.hwcaps=-AVX,-AVX2,-AVX512F,-AVX512VL,-ERMS,-FSRM,-AVX_Fast_Unaligned_Load";

fn manifest() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn run(command: &mut Command) -> Output {
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(
        output.status.success(),
        "{command:?}:\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Builds the replay with the library of the program that the tests start, and returns it.
fn build() -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(manifest())
        .args(["build", "--package", "proxima-guard", "--profile", "quick"]);
    cargo.args(["--message-format", "json-render-diagnostics"]);
    for variable in ["RUSTFLAGS", "CARGO_ENCODED_RUSTFLAGS", "CARGO_INCREMENTAL"] {
        cargo.env_remove(variable);
    }
    // What cargo tells this test about its crate. The build of a dependency that looked at it would be done again,
    // and that of everything that stands on it.
    let told = ["CARGO_MANIFEST_", "CARGO_PKG_"];
    for (variable, _) in std::env::vars().filter(|(name, _)| told.iter().any(|begin| name.starts_with(begin)))
    {
        cargo.env_remove(variable);
    }
    let output = run(&mut cargo);
    let messages = String::from_utf8(output.stdout).expect("cargo speaks JSON");
    let program = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "replay")
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    program.expect("cargo names the program")
}

/// The instructions and requests of one run.
fn count(program: &Path, scenario: &str, rounds: usize) -> (u64, u64) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("callgrind");
    let output = run(Command::new("valgrind")
        .args([
            "--tool=callgrind",
            &format!("--callgrind-out-file={}", file.display()),
        ])
        .arg(program)
        .args([scenario, &rounds.to_string()])
        .env("GLIBC_TUNABLES", TUNABLES));
    let requests = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .expect("the replay prints its requests");
    let profile = fs::read_to_string(file).unwrap();
    let total = profile
        .lines()
        .find_map(|line| line.strip_prefix("totals: "))
        .expect("callgrind writes totals");
    (total.trim().parse().unwrap(), requests)
}

/// The instructions of a request. The seeds of hash tables are random, and the number varies by a hundredth with
/// them: one that is above `most` is counted again, and the least counts.
fn least(program: &Path, scenario: &str, most: u64) -> u64 {
    let mut least = u64::MAX;
    for _ in 0..TRIES {
        let [few, many] = ROUNDS.map(|rounds| count(program, scenario, rounds));
        least = least.min((many.0 - few.0) / (many.1 - few.1));
        if least <= most {
            break;
        }
    }
    least
}

fn unfit() -> Option<&'static str> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return Some("valgrind is not installed");
    }
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    (!cpu.contains(" avx2 ")).then_some("this CPU has no AVX2")
}

#[test]
fn requests_cost_no_more_instructions_than_recorded() {
    if let Some(why) = unfit() {
        eprintln!("\n*** NOT TESTED: instructions per request are not counted, {why} ***\n");
        return;
    }
    let file = manifest().join("tests/instructions.json");
    let program = build();
    let updates = std::env::var_os("PROXIMA_UPDATE").is_some();
    let committed: BTreeMap<String, u64> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    let measured: BTreeMap<&str, u64> = SCENARIOS
        .iter()
        .map(|&scenario| {
            let most = committed.get(scenario).filter(|_| !updates);
            let most = most.map_or(0.0, |&before| before as f64 * (1.0 + TOLERANCE));
            (scenario, least(&program, scenario, most as u64))
        })
        .collect();
    println!("{measured:#?}");
    let (alone, in_fleet) = (measured["reads-of-one-copy"], measured["reads-in-a-fleet"]);
    assert!(
        in_fleet as f64 <= alone as f64 * (1.0 + FLEET),
        "a read in a fleet takes {in_fleet} instructions, one of a single copy {alone}"
    );
    if updates {
        let text = serde_json::to_string_pretty(&measured).unwrap();
        return fs::write(file, text + "\n").unwrap();
    }
    let mut grown = Vec::new();
    for (scenario, now) in measured {
        let before = committed.get(scenario).copied().unwrap_or(0);
        let ratio = now as f64 / before as f64;
        if ratio > 1.0 + TOLERANCE {
            grown.push(format!(
                "{scenario}: {before} → {now} ({:+.1} %)",
                (ratio - 1.0) * 100.0
            ));
        } else if ratio < 1.0 - TOLERANCE {
            eprintln!("{scenario}: {before} → {now}: keep the gain with PROXIMA_UPDATE=1");
        }
    }
    assert!(
        grown.is_empty(),
        "instructions per request have grown by more than 2 %: {grown:#?}"
    );
}
