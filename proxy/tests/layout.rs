//! The folders of the program use each other only as `lib.rs` says. The modules inside a folder do not use
//! each other in circles. Protocols are named in few places.

use std::{
    collections::{BTreeMap, BTreeSet},
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
fn folders_use_only_the_folders_below_them() {
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

/// Copies know protocols through the contract alone, and only the control thread's part of them opens
/// sockets.
#[test]
fn copies_open_no_socket() {
    let mut all = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("src/copies"),
        &mut all,
    );
    for path in all {
        let text = fs::read_to_string(&path).unwrap();
        for word in ["TcpStream", "UnixStream", "crate::reactor"] {
            assert!(!text.contains(word), "{} names {word}", path.display());
        }
    }
}

/// What names a protocol beside `protocols/`, and why. What names none any more has to go from this list.
const SPEAKS: &[(&str, &str)] = &[
    (
        "admin/mcrouter",
        "answers what clients of mcrouter ask of the process",
    ),
    ("cli", "says which protocols the program speaks"),
    (
        "client/stats",
        "answers memcached's `stats` and Redis' `INFO` from the worker's counts",
    ),
    (
        "config",
        "protocols, their commands and their options are words of a configuration",
    ),
    (
        "control/listening/announce",
        "ElastiCache's discovery is asked for in memcached's protocol",
    ),
    ("control/surroundings/discovery", "the same, as a client"),
    ("embedded", "servers in this process, one for each protocol"),
    ("frontdoor", "reads files of programs that speak one protocol"),
    ("members/discovery", "the answers of ElastiCache's discovery"),
    (
        "protocol/embedded.rs",
        "which of the servers in this process is meant",
    ),
    (
        "route/handle/big_value.rs",
        "reads and writes memcached's items, as mcrouter's route does",
    ),
    ("route/handle/l1_l2_cache.rs", "the same"),
    ("route/handle/lease_pairing.rs", "leases are memcached's"),
    ("route/handle/migrate.rs", "a lease goes where its token is from"),
    ("route/handle/shadow_leases.rs", "leases are memcached's"),
    (
        "route/handle/size_split.rs",
        "reads and writes memcached's items, as mcrouter's route does",
    ),
    ("route/handle/staging.rs", "the same"),
    ("route/handle/time_left.rs", "the same"),
    ("route/handle/warm_up.rs", "the same"),
];

/// A protocol's own code is in `protocols/`, and everything else knows it by the contract.
#[test]
fn no_folder_but_protocols_names_a_protocol() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut all, mut wrong, mut speaking) = (Vec::new(), Vec::new(), BTreeSet::new());
    files(&source, &mut all);
    let names = [
        "memcache::",
        "Memcache",
        "resp::",
        "Redis",
        "redis::",
        "MEMCACHED",
        "REDIS",
    ];
    for path in all {
        let inside = path.strip_prefix(&source).unwrap().to_str().unwrap();
        if inside.starts_with("protocols/") || inside.ends_with("tests.rs") || !inside.contains('/') {
            continue;
        }
        let code = code(&fs::read_to_string(&path).unwrap());
        // What people read may name a protocol.
        let is_code = |line: &&str| !line.contains('"');
        let lines = code.lines().filter(is_code);
        let found = lines
            .filter(|line| names.iter().any(|name| names_it(line, name)))
            .map(str::trim)
            .next();
        let Some(line) = found else { continue };
        let is_in = |place: &str| {
            let rest = inside.strip_prefix(place);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        match SPEAKS.iter().find(|(place, _)| is_in(place)) {
            Some((place, _)) => drop(speaking.insert(*place)),
            None => wrong.push(format!("{inside}: {line}")),
        }
    }
    assert!(wrong.is_empty(), "these name a protocol: {wrong:#?}");
    let silent: Vec<&str> = SPEAKS
        .iter()
        .map(|(place, _)| *place)
        .filter(|place| !speaking.contains(place))
        .collect();
    assert!(silent.is_empty(), "these name no protocol any more: {silent:?}");
}

/// Does this line have the word, and not as a part of another one?
fn names_it(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| {
        let is_begin = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_end = word.ends_with(':')
            || !line[at + word.len()..].starts_with(|c: char| c.is_lowercase() || c == '_');
        is_begin && is_end
    })
}

#[test]
fn the_scan_for_uses_finds_every_form() {
    let text = "use crate::{\n    config::{Loaded, schema::Config},\n    members,\n};\n\
                use crate::route::Tree;\nlet x = crate::embedded::get();";
    assert_eq!(used(text), ["config", "members", "route", "embedded"]);
}

/// Circles that are there for a reason: the folder and its modules. A circle that is gone has to go from this
/// list.
const CIRCLES: &[(&str, &str)] = &[
    // A route is built beside its decision, and builds the routes below it.
    ("proxy/src/route", "compile handle"),
    ("proxy/src/frontdoor/mcrouter", "builder handles"),
];

/// Which modules of a folder each of them uses.
type Uses = BTreeMap<String, BTreeSet<String>>;

/// A path of names, outermost first.
type Names = Vec<String>;

/// The code of a file, without comments and without the tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap();
    let lines = text.lines().map(|line| line.split("//").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads one path of a `use` from the front of `text`, braces included: every path that it stands for, and
/// what follows.
fn tree(text: &str) -> (Vec<Names>, &str) {
    let mut text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        let mut all = Vec::new();
        loop {
            rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
            match rest.strip_prefix('}') {
                Some(rest) => return (all, rest),
                None if rest.is_empty() => return (all, rest),
                None => {}
            }
            let (some, behind) = tree(rest);
            all.extend(some);
            rest = behind;
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '*';
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    let name = text[..end].to_owned();
    // At least one letter is taken, whatever it is.
    text = &text[end.max(text.chars().next().map_or(0, char::len_utf8))..];
    let Some(rest) = text.strip_prefix("::") else {
        return (vec![vec![name]], text);
    };
    let (below, rest) = tree(rest);
    let below = below.into_iter().map(|path| [vec![name.clone()], path].concat());
    (below.collect(), rest)
}

/// The paths in a text that begin with one of these words.
fn paths(text: &str, first: &[&str]) -> Vec<Names> {
    let mut found = Vec::new();
    for word in first {
        for (at, _) in text.match_indices(&format!("{word}::")) {
            let is_inside = text[..at].ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':');
            if !is_inside {
                found.extend(tree(&text[at..]).0);
            }
        }
    }
    found
}

/// The modules of a crate.
struct Modules {
    /// The code of each file, by the path of its module.
    code: BTreeMap<Names, String>,
    /// Names that a folder's own file takes from one of its modules, by folder and name.
    exported: BTreeMap<(Names, String), String>,
}

impl Modules {
    fn read(source: &Path) -> Self {
        let mut all = Vec::new();
        files(source, &mut all);
        let all = all.iter().filter(|path| !path.ends_with("tests.rs"));
        let module = |path: &PathBuf| {
            let inside = path.strip_prefix(source).unwrap().with_extension("");
            let names: Names = inside
                .iter()
                .map(|name| name.to_str().unwrap().to_owned())
                .collect();
            let is_folder = names
                .last()
                .is_some_and(|name| ["mod", "lib", "main"].contains(&&**name));
            let names = names[..names.len() - usize::from(is_folder)].to_vec();
            (names, code(&fs::read_to_string(path).unwrap()))
        };
        // `main.rs` and `lib.rs` are one module: a program without a library, or one that only calls it.
        let mut code: BTreeMap<Names, String> = BTreeMap::new();
        for (names, text) in all.map(module) {
            code.entry(names).or_default().push_str(&text);
        }
        let mut exported = BTreeMap::new();
        for (folder, text) in &code {
            for (at, _) in text.match_indices("use ") {
                for path in tree(&text[at + 4..]).0 {
                    let path = &path[usize::from(path[0] == "self")..];
                    let child = path
                        .first()
                        .map(|child| [folder.clone(), vec![child.clone()]].concat());
                    if path.len() > 1 && child.is_some_and(|child| code.contains_key(&child)) {
                        exported.insert((folder.clone(), path[path.len() - 1].clone()), path[0].clone());
                    }
                }
            }
        }
        Self { code, exported }
    }

    /// Which of its neighbours each module of each folder uses.
    fn uses(&self) -> BTreeMap<Names, Uses> {
        let mut uses: BTreeMap<Names, Uses> = BTreeMap::new();
        for (module, text) in &self.code {
            for path in paths(text, &["crate", "super", "self"]) {
                let path = absolute(module, &path);
                for (depth, own) in module.iter().enumerate() {
                    let folder = module[..depth].to_vec();
                    let Some(next) = path.strip_prefix(&*folder).and_then(<[String]>::first) else {
                        break;
                    };
                    let used = match self.code.contains_key(&path[..=depth]) {
                        true => Some(next),
                        false => self.exported.get(&(folder.clone(), next.clone())),
                    };
                    if let Some(used) = used.filter(|used| *used != own) {
                        let users = uses.entry(folder).or_default();
                        users.entry(own.clone()).or_default().insert(used.clone());
                    }
                }
            }
        }
        uses
    }
}

/// A path as it is from the crate's root.
fn absolute(module: &[String], path: &[String]) -> Names {
    let up = path.iter().take_while(|name| *name == "super").count();
    match &*path[0] {
        "crate" => path[1..].to_vec(),
        "self" => [module, &path[1..]].concat(),
        _ => [&module[..module.len().saturating_sub(up)], &path[up..]].concat(),
    }
}

/// The circles among these modules: each a set of modules that all lead to each other.
fn circles(uses: &Uses) -> BTreeSet<String> {
    let mut all = BTreeMap::new();
    for from in uses.keys() {
        let mut reached = BTreeSet::new();
        let mut rest = vec![from];
        while let Some(next) = rest.pop() {
            let used = uses.get(next).into_iter().flatten();
            rest.extend(used.filter(|used| reached.insert(used.as_str())));
        }
        all.insert(from.as_str(), reached);
    }
    let leads_back = |from: &str, to: &str| all.get(from).is_some_and(|reached| reached.contains(to));
    let circle = |(name, reached): (&&str, &BTreeSet<&str>)| {
        let members = reached.iter().copied().filter(|other| leads_back(other, name));
        members.collect::<Vec<_>>().join(" ")
    };
    let in_circles = all.iter().filter(|(name, reached)| reached.contains(*name));
    in_circles.map(circle).collect()
}

#[test]
fn no_modules_of_a_folder_use_each_other_in_a_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut found = BTreeSet::new();
    for part in ["proxy/src", "wire/src", "bench/src"] {
        // Between the proxy's parts the drawing in `lib.rs` decides.
        let is_drawn = |folder: &Names| part == "proxy/src" && folder.is_empty();
        let uses = Modules::read(&root.join(part)).uses().into_iter();
        for (folder, uses) in uses.filter(|(folder, _)| !is_drawn(folder)) {
            let folder = [vec![part.to_owned()], folder].concat().join("/");
            found.extend(circles(&uses).into_iter().map(|circle| (folder.clone(), circle)));
        }
    }
    let circle = |(folder, circle): &(&str, &str)| ((*folder).to_owned(), (*circle).to_owned());
    let known: BTreeSet<_> = CIRCLES.iter().map(circle).collect();
    let gone: Vec<_> = known.difference(&found).collect();
    assert!(
        gone.is_empty(),
        "not a circle any more, and still in CIRCLES: {gone:#?}"
    );
    let new: Vec<_> = found.difference(&known).collect();
    assert!(
        new.is_empty(),
        "modules that use each other in a circle: {new:#?}"
    );
}

#[test]
fn a_circle_is_found_through_names_that_a_folder_exports() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write(
        "lib.rs",
        "mod a;\nmod b;\nmod c;\nuse self::{a::{One, Two}, c::Three};",
    );
    write("a.rs", "fn f() { crate::b::inner::g() }");
    write("b/mod.rs", "mod inner;");
    write("b/inner.rs", "use super::super::Two; // and crate::c");
    write(
        "c.rs",
        "use super::One;\n#[cfg(test)]\nmod tests { use crate::b; }",
    );
    let uses = Modules::read(folder.path()).uses();
    let found: Vec<_> = uses.values().flat_map(circles).collect();
    assert_eq!(found, ["a b"]);
}
