//! Recognizes configurations of other programs.

use super::Diagnostic;

/// Names the program whose configuration this is, with a remedy. `None`: it may be meant as ours.
pub(super) fn recognized(text: &str) -> Option<Diagnostic> {
    let lines = || text.lines().filter(|line| !is_comment(line));
    if lines().any(|line| line.starts_with("listeners:")) {
        return None;
    }
    let is_json = lines()
        .next()
        .is_some_and(|line| line.trim_start().starts_with('{'));
    let has = |word: &str| text.contains(&format!("\"{word}\""));
    if is_json && (has("route") || has("routes") || has("named_handles")) && !has("listeners") {
        return Some(Diagnostic::whole("this is a configuration of mcrouter").with_remedy(
            "mcrouter's options and files are served by `proxima mcrouter --config-file=FILE --port=PORT` (docs/migrating-from-mcrouter.md)",
        ));
    }
    // A pool in twemproxy's format is a name with keys below it.
    let is_below = |line: &str, key: &str| {
        let trimmed = line.trim_start();
        trimmed.len() < line.len()
            && trimmed
                .strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(':'))
    };
    let below = |key: &str| lines().any(|line| is_below(line, key));
    if below("listen") && below("servers") {
        return Some(Diagnostic::whole("this is a configuration of twemproxy").with_remedy(
            "twemproxy's options and files are served by `proxima nutcracker -c FILE` (docs/migrating-from-twemproxy.md)",
        ));
    }
    None
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty()
        || line.starts_with("//")
        || line.starts_with('#')
        || line.starts_with("/*")
        || line.starts_with('*')
}

#[cfg(test)]
mod tests {
    use super::recognized;

    #[test]
    fn files_of_other_programs_are_recognized() {
        for (text, whose) in [
            (
                "{\"pools\": {\"A\": {\"servers\": [\"a:1\"]}}, \"route\": \"PoolRoute|A\"}",
                "mcrouter",
            ),
            ("// ours\n/* and\n * more */\n{\n  \"routes\": []\n}", "mcrouter"),
            (
                "alpha:\n  listen: 127.0.0.1:22121\n  hash: fnv1a_64\n  servers:\n   - 127.0.0.1:6379:1\n",
                "twemproxy",
            ),
        ] {
            let diagnostic = recognized(text).unwrap().to_string();
            assert!(diagnostic.contains(&format!("of {whose};")), "{diagnostic}");
        }
        for text in [
            "",
            "{}",
            "listeners:\n  - listen: 1\n    servers: 2\n",
            "{\"listeners\": [{\"address\": \"a:1\", \"route\": \"x\"}]}",
            "pools:\n  a:\n    servers: []\n",
        ] {
            assert!(recognized(text).is_none(), "{text}");
        }
    }
}
