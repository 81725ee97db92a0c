//! The words by which `by_operation` chooses: commands of a protocol, and groups of them.

use proxima_wire::{memcache::Command, message, mysql::sql::Class, resp};

use super::protocol::Protocol;

/// Groups with their meanings. A command's own entry wins over its group's.
const GROUPS: [(&str, &str); 5] = [
    ("read", "get, gets, mg, lease-get, metaget"),
    ("write", "set, add, replace, append, prepend, cas, ms, lease-set"),
    ("delete", "delete, md"),
    ("arithmetic", "incr, decr, ma"),
    ("touch", "touch, gat, gats"),
];

/// Commands of Redis that have a key, without subcommands.
fn of_redis() -> impl Iterator<Item = &'static str> + Clone {
    (0..resp::Command::COUNT)
        .filter_map(resp::Command::of)
        .filter(|command| command.has_keys() && !command.name.contains('|'))
        .map(|command| command.name)
}

/// What statements of MySQL do.
fn of_mysql() -> impl Iterator<Item = &'static str> + Clone {
    Class::ALL.iter().map(|&(_, word)| word)
}

/// All words of all protocols. Those that are Redis' alone have no meaning here: they are too many to be
/// listed.
pub(crate) fn all_words() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let is_known = |name: &str| words().any(|(word, _)| word == name);
    let statements = of_mysql().filter(move |name| !is_known(name));
    words().chain(
        of_redis()
            .filter(move |name| !is_known(name))
            .map(|name| (name, ""))
            .chain(statements.map(|name| (name, "statements of MySQL"))),
    )
}

/// Is this a word of that protocol?
pub(crate) fn is_word_of(protocol: Protocol, word: &str) -> bool {
    let is_group = GROUPS.iter().any(|(group, _)| *group == word);
    match protocol {
        Protocol::REDIS => is_group || of_redis().any(|name| name == word),
        // Whatever does not only read goes where writes go, unless it is named.
        Protocol::MYSQL => matches!(word, "read" | "write") || of_mysql().any(|name| name == word),
        _ => words().any(|(name, _)| name == word),
    }
}

/// May replies to this command of that protocol be kept in a near cache?
pub(crate) fn is_kept(protocol: Protocol, word: &str) -> bool {
    let mut commands = (0..resp::Command::COUNT).filter_map(resp::Command::of);
    match protocol {
        Protocol::REDIS => commands.any(|command| command.is_kept && command.name == word),
        _ => [Command::Get, Command::MetaGet]
            .iter()
            .any(|command| command.name() == word),
    }
}

/// All words of memcached with their meanings: the groups, then the commands that have a key and are no
/// group's name.
pub(crate) fn words() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let about_keys =
        |command: &Command| !matches!(command.class(), message::Class::Admin | message::Class::Session);
    let is_group = |name: &str| GROUPS.iter().any(|(group, _)| *group == name);
    let commands = Command::ALL
        .iter()
        .filter(move |command| about_keys(command))
        .map(|command| command.name());
    GROUPS.into_iter().chain(
        commands
            .filter(move |name| !is_group(name))
            .map(|command| (command, "this command")),
    )
}

/// Commands that change what a server holds. An `mg` may do so as well, by its flags, but counts as a read.
pub(crate) fn changes() -> impl Iterator<Item = Command> {
    let classes = [
        message::Class::Write,
        message::Class::Delete,
        message::Class::Arithmetic,
        message::Class::Touch,
    ];
    let of_class = |class| {
        Command::ALL
            .iter()
            .copied()
            .filter(move |command| command.class() == class)
    };
    classes.into_iter().flat_map(of_class)
}

/// The entry for a command.
pub(crate) fn entry<T>(entries: &[(String, T)], command: Command) -> Option<&T> {
    let get = |word: &str| {
        let mut entries = entries.iter();
        entries.find_map(|(name, entry)| (name == word).then_some(entry))
    };
    let of_group = || {
        GROUPS
            .iter()
            .filter(|(_, commands)| commands.split(", ").any(|name| name == command.name()))
            .find_map(|(group, _)| get(group))
    };
    get(command.name()).or_else(of_group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_name_the_commands_of_their_class() {
        for (group, commands) in GROUPS {
            let named: Vec<Command> = commands
                .split(", ")
                .map(|name| Command::by_name(name).unwrap())
                .collect();
            let class = named[0].class();
            let mut of_class: Vec<&str> = Command::ALL
                .iter()
                .filter(|command| command.class() == class)
                .map(|command| command.name())
                .collect();
            let mut listed: Vec<&str> = commands.split(", ").collect();
            of_class.sort_unstable();
            listed.sort_unstable();
            assert_eq!(listed, of_class, "{group}");
        }
    }
}
