//! The parts of the program use each other as `lib.rs` says, and in no other way.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The lines of the drawing in `lib.rs` that says who may use whom: each names parts, and whether they use
/// each other.
fn floors(lib: &str) -> Vec<(Vec<String>, bool)> {
    let drawing = lib.split("//! ```text\n").last().unwrap();
    let drawing = drawing.split("//! ```\n").next().unwrap();
    let floor = |line: &str| {
        let names = line.trim_start_matches("//!").split_whitespace();
        let names = names.filter(|name| *name != "+").map(str::to_owned);
        (names.collect(), line.contains('+'))
    };
    drawing.lines().map(floor).collect()
}

/// The parts that a text names: `crate::NAME`, and the first names in `use crate::{…}`.
fn used(text: &str) -> Vec<&str> {
    let ends = |c: char| !c.is_ascii_alphanumeric() && c != '_';
    let first = |text: &str| text.find(ends).unwrap_or(text.len());
    let mut names = Vec::new();
    for (at, path) in text.match_indices("crate::") {
        let rest = &text[at + path.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            names.push(&rest[..first(rest)]);
            continue;
        };
        let (mut depth, mut is_first) = (1, true);
        for (i, c) in group.char_indices() {
            match c {
                '{' => depth += 1,
                '}' if depth == 1 => break,
                '}' => depth -= 1,
                ',' if depth == 1 => is_first = true,
                c if c.is_whitespace() => {}
                _ if is_first => {
                    names.push(&group[i..i + first(&group[i..])]);
                    is_first = false;
                }
                _ => {}
            }
        }
    }
    names
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files(&path, found),
            false => found.push(path),
        }
    }
}

#[test]
fn parts_use_only_what_stands_below_them() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let lib = fs::read_to_string(source.join("lib.rs")).unwrap();
    let floors = floors(&lib);
    let floor_of = |part: &str| {
        floors
            .iter()
            .position(|(names, _)| names.iter().any(|name| name == part))
    };
    for line in lib.lines().filter_map(|line| line.strip_prefix("pub mod ")) {
        let part = line.trim_end_matches(';');
        assert!(
            floor_of(part).is_some(),
            "lib.rs does not say what `{part}` may use"
        );
    }
    let mut all = Vec::new();
    files(&source, &mut all);
    let mut wrong = Vec::new();
    for path in all {
        let inside = path.strip_prefix(&source).unwrap().to_str().unwrap();
        let part = inside.split(['/', '.']).next().unwrap();
        let Some(own) = floor_of(part) else { continue };
        let text = fs::read_to_string(&path).unwrap();
        // What a comment or a test beside the code names is no part of the program.
        let code = text.split("#[cfg(test)]").next().unwrap().lines();
        let code: Vec<&str> = code.filter(|line| !line.trim_start().starts_with("//")).collect();
        for name in used(&code.join("\n")) {
            let allowed = |floor: usize| floor > own || name == part || (floor == own && floors[own].1);
            if floor_of(name).is_some_and(|floor| !allowed(floor)) {
                wrong.push(format!("{inside} uses {name}"));
            }
        }
    }
    assert!(wrong.is_empty(), "against the order in lib.rs: {wrong:#?}");
}

/// Copies know protocols through the contract alone, and only the control thread's part of them opens sockets.
#[test]
fn copies_name_no_protocol_and_open_no_socket() {
    let mut all = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/copies"),
        &mut all,
    );
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        for word in ["memcache::", "TcpStream", "UnixStream", "crate::reactor"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
}

#[test]
fn what_a_text_uses_is_found() {
    let text = "use crate::{\n    config::{Loaded, schema::Config},\n    members,\n};\n\
                use crate::route::Tree;\nlet x = crate::near::get();";
    assert_eq!(used(text), ["config", "members", "route", "near"]);
}
