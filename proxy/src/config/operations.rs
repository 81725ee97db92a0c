//! The words that `by_operation` chooses by: commands of memcached's text protocol, and groups of them.

/// Groups, with what they mean. A command's own entry wins over its group's.
pub(super) const GROUPS: [(&str, &str); 5] = [
    ("read", "get, gets, mg"),
    ("write", "set, add, replace, append, prepend, cas, ms"),
    ("delete", "delete, md"),
    ("arithmetic", "incr, decr, ma"),
    ("touch", "touch, gat, gats"),
];

/// Commands with keys that are no group's name as well.
pub(super) const COMMANDS: [&str; 16] = [
    "get", "gets", "mg", "set", "add", "replace", "append", "prepend", "cas", "ms", "md", "incr", "decr",
    "ma", "gat", "gats",
];

/// All of them, with what they mean.
pub(super) fn words() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    GROUPS
        .into_iter()
        .chain(COMMANDS.into_iter().map(|command| (command, "this command")))
}
