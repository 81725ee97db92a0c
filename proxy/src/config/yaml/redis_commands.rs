//! Commands that the configuration declares.

use std::collections::BTreeMap;

use proxima_wire::{message::Class, resp::Command};

use crate::config::{
    Diagnostic,
    document::{Name, Node},
    form::{Choice, Form, List, Named, Optional, Shape, Word},
    reading::Reading,
    schema::DeclaredCommand,
    section::section,
};

/// Names of commands of modules begin so, and their first word is their only key, except for those below.
const FAMILIES: [&str; 7] = ["json.", "bf.", "cf.", "cms.", "topk.", "tdigest.", "ts."];
const OTHERS: [&str; 12] = [
    "json.mget",
    "json.mset",
    "json.debug",
    "cms.merge",
    "tdigest.merge",
    "ts.madd",
    "ts.mget",
    "ts.mrange",
    "ts.mrevrange",
    "ts.queryindex",
    "ts.createrule",
    "ts.deleterule",
];

/// The names of declared commands.
#[derive(Debug)]
pub(in crate::config) struct CommandName;

impl Named for CommandName {
    const WHAT: &'static str = "command";
}

section! {
    /// A command of Redis that Proxima does not know: of a module, or newer.
    pub(super) struct CommandKeys {
        /// The number of its words with its name; negative: at least so many.
        arity: Whole = -2,
        /// The position of its first key among its words, that of its last (negative: counted from the end),
        /// and the step from key to key; `[0, 0, 0]` without keys. Names of `JSON`, `BF`, `CF`, `CMS`,
        /// `TOPK`, `TDIGEST` and `TS` whose first word is the only key need none.
        keys: Optional<List<Whole>>,
        /// What it does to the data.
        class: Word<Class> = Class::Write,
    }
}

impl Choice for Class {
    const WHAT: &'static str = "a class of commands";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        ("read", Self::Read, "it returns values and changes nothing"),
        ("write", Self::Write, "it stores values"),
        ("delete", Self::Delete, "it removes values"),
        (
            "arithmetic",
            Self::Arithmetic,
            "it computes a new value at the server",
        ),
        ("touch", Self::Touch, "it changes an expiry time"),
    ];
}

/// A whole number of either sign.
#[derive(Debug)]
pub(super) struct Whole;

/// No command has more words in its declaration.
const MOST: i32 = 1 << 15;

impl Form for Whole {
    type Value = i32;

    fn shape() -> Shape {
        Shape::Count {
            min: i64::from(-MOST),
            max: i64::from(MOST),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<i32, Diagnostic> {
        let number = node.scalar().and_then(|text| text.parse().ok());
        number
            .filter(|number| (-MOST..=MOST).contains(number))
            .ok_or_else(|| cx.expected(node, "a whole number"))
    }

    fn show(value: &i32) -> Option<String> {
        Some(value.to_string())
    }
}

/// The declared commands without those that have mistakes, which are recorded.
pub(super) fn declared(
    entries: Vec<(Name, Option<CommandKeys>)>,
    cx: &mut Reading,
) -> BTreeMap<String, DeclaredCommand> {
    let mut commands = BTreeMap::new();
    for (name, keys) in entries {
        let command = name.text.to_ascii_lowercase();
        let read = cx.within("commands", |cx| {
            cx.within(&*name.text, |cx| declare(&name, &command, keys, cx))
        });
        match read {
            Ok(declared) => commands.extend(declared.map(|declared| (command, declared))),
            Err(mistake) => cx.mistakes.push(mistake),
        }
    }
    commands
}

fn declare(
    name: &Name,
    command: &str,
    keys: Option<CommandKeys>,
    cx: &Reading,
) -> Result<Option<DeclaredCommand>, Diagnostic> {
    let refuse = |problem: &str, remedy: &str| Err(cx.refuse(name.at, problem).with_remedy(remedy));
    if command.is_empty()
        || !command
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && byte != b'|')
    {
        return refuse("this is no name of a command", "write its first word alone");
    }
    if Command::find(command.as_bytes()).is_some() {
        return refuse("this command is known", "leave it out");
    }
    let Some(CommandKeys { arity, keys, class }) = keys else {
        return Ok(None);
    };
    let is_of_family =
        FAMILIES.iter().any(|family| command.starts_with(family)) && !OTHERS.contains(&command);
    let keys = match keys.as_deref() {
        None if is_of_family => [1, 1, 1],
        None => {
            return refuse(
                "it is not known where the keys of this command are",
                "write `keys: [1, 1, 1]` if its first word is its only key",
            );
        }
        Some(&[0, 0, 0]) => [0, 0, 0],
        Some(&[first, last, step]) if first > 0 && step > 0 && (last < 0 || last >= first) => {
            [first, last, step]
        }
        Some(_) => {
            return refuse(
                "these are no positions of keys",
                "write the first one, the last one and the step, as `[1, -1, 1]` for all words",
            );
        }
    };
    Ok(Some(DeclaredCommand { arity, keys, class }))
}
