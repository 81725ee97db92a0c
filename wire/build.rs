//! Makes tables of `commands/redis.tsv`: every command, and a perfect hash of their names.

#![allow(
    clippy::disallowed_methods,
    reason = "Cargo tells a build script everything by the environment"
)]

use std::{env, error::Error, fmt::Write, fs, path::Path};

#[path = "src/resp/name.rs"]
mod name;

const DATA: &str = "commands/redis.tsv";

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={DATA}");
    println!("cargo::rerun-if-changed=src/resp/name.rs");
    let text = fs::read_to_string(DATA)?;
    let mut rows: Vec<Vec<&str>> = Vec::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        rows.push(line.split('\t').collect());
    }
    let names: Vec<&str> = rows.iter().map(|row| row[0]).collect();
    let mut out = format!("pub(super) static COMMANDS: [Command; {}] = [\n", rows.len());
    for row in &rows {
        let &[
            name,
            arity,
            flags,
            positions,
            specs,
            served,
            class,
            reason,
            empty,
            kept,
            changes,
            _,
        ] = &row[..]
        else {
            return Err(format!("{DATA}: {row:?}").into());
        };
        let prefix = format!("{name}|");
        let is_its = |other: &&str| other.starts_with(&prefix);
        let first = names.iter().position(is_its).unwrap_or(0);
        let count = names.iter().filter(|other| is_its(other)).count();
        let all: Vec<_> = flags.split(',').filter(|flag| !flag.is_empty()).collect();
        writeln!(
            out,
            "Command {{ name: {name:?}, arity: {arity}, flags: &{all:?}, positions: [{}], specs: &[{}], \
             served: {}, class: Class::{}, reason: {reason:?}, subcommands: {first}..{}, is_blocking: {}, \
             is_write: {}, has_first_key: {}, empty: &[{}], is_kept: {}, changes: Changes::{} }},",
            positions.replace(' ', ", "),
            all_specs(specs)?,
            served_as(served)?,
            capital(class),
            first + count,
            all.contains(&"blocking"),
            all.contains(&"write"),
            specs == "@1 range 0 1 0" && served != "pattern",
            empty_cases(empty)?,
            kept == "kept",
            capital(changes),
        )?;
    }
    out.push_str("];\n");
    writeln!(out, "const NAMES: [&str; {}] = {names:?};", names.len())?;
    let (seed, table) = table(&names).ok_or("no seed tells all names apart")?;
    writeln!(out, "const SEED: u64 = {seed};")?;
    writeln!(out, "static PLACES: [u16; {}] = {table:?};", table.len())?;
    let folder = env::var("OUT_DIR")?;
    fs::write(Path::new(&folder).join("commands.rs"), out)?;
    Ok(())
}

fn capital(word: &str) -> String {
    word[..1].to_uppercase() + &word[1..]
}

fn served_as(word: &str) -> Result<String, String> {
    let (word, rule) = word.split_once(':').unwrap_or((word, ""));
    Ok(match word {
        "key" => "Handling::Key".into(),
        "list" | "pairs" | "sum" | "ok" => format!("Handling::Split(Combine::{})", capital(word)),
        "each" => format!("Handling::Each(Combine::{})", capital(rule)),
        "pattern" | "any" | "here" | "walk" | "channel" | "channels" | "transaction" | "alone"
        | "refused" | "own" | "container" => {
            format!("Handling::{}", capital(word))
        }
        _ => return Err(format!("{DATA}: served as {word}")),
    })
}

/// The specifications of a command's keys.
fn all_specs(text: &str) -> Result<String, String> {
    let mut out = String::new();
    for spec in text.split("; ").filter(|spec| !spec.is_empty()) {
        let words: Vec<&str> = spec.split(' ').collect();
        let (begin, find) = match words[..] {
            [begin, kind, a, b, c, ..] => {
                let begin = begin.trim_start_matches('@');
                let begin = match begin.split_once(',') {
                    Some((word, from)) => format!("Begin::Keyword({word:?}, {from})"),
                    None => format!("Begin::Index({begin})"),
                };
                let find = match kind {
                    "range" => format!("Find::Range {{ last: {a}, step: {b}, limit: {c} }}"),
                    "number" => format!("Find::Number {{ at: {a}, first: {b}, step: {c} }}"),
                    _ => return Err(format!("{DATA}: {spec}")),
                };
                (begin, find)
            }
            _ => return Err(format!("{DATA}: {spec}")),
        };
        let is_channel = words.contains(&"channel");
        out += &format!("Spec {{ begin: {begin}, find: {find}, is_channel: {is_channel} }}, ");
    }
    Ok(out)
}

/// What an empty server answers: one case behind the other.
fn empty_cases(text: &str) -> Result<String, String> {
    let mut out = String::new();
    for case in text.split("; ").filter(|case| !case.is_empty()) {
        let (mut when, mut rest) = (String::new(), case);
        while let Some((condition, behind)) = rest.strip_prefix("if ").and_then(|text| text.split_once(": "))
        {
            rest = behind;
            when += &match condition.split(' ').collect::<Vec<_>>()[..] {
                [word, "from", at] => format!("ArgumentTest::Word({word:?}, {at}), "),
                [at, "is", word] => format!("ArgumentTest::Is({at}, {word:?}), "),
                [count, "words"] => format!("ArgumentTest::Words({count}), "),
                _ => return Err(format!("{DATA}: if {condition}")),
            };
        }
        out += &format!("Case {{ when: &[{when}], answer: {} }}, ", empty_answer(rest)?);
    }
    Ok(out)
}

fn empty_answer(text: &str) -> Result<String, String> {
    Ok(match text.split(' ').collect::<Vec<_>>()[..] {
        ["each", at, lines] => {
            let [two, three] = both(lines);
            format!("Answer::Each({at}, {two:?}, {three:?})")
        }
        [word @ ("score" | "fields" | "server")] => format!("Answer::{}", capital(word)),
        [word @ "distinct", at, step] => format!("Answer::{}({at}, {step})", capital(word)),
        [
            word @ ("zeros" | "count" | "members" | "integer" | "minus" | "float" | "double" | "length"
            | "end" | "echo"),
            at,
        ] => format!("Answer::{}({at})", capital(word)),
        _ if text.starts_with('-') => format!("Answer::Error({:?})", &text[1..]),
        _ => {
            let [two, three] = both(text);
            format!("Answer::Bytes({two:?}, {three:?})")
        }
    })
}

/// Lines of a reply, in RESP2 and in RESP3.
fn both(text: &str) -> [String; 2] {
    let (two, three) = match text {
        "null" => ("$-1", "_"),
        "nulls" => ("*-1", "_"),
        "map" => ("*0", "%0"),
        "set" => ("*0", "~0"),
        "\"\"" => ("$0 ", "$0 "),
        _ => text.split_once(" / ").unwrap_or((text, text)),
    };
    [two, three].map(|lines| lines.split(' ').map(|line| format!("{line}\r\n")).collect())
}

/// A seed with which each top-level name has a place of its own, and the numbers of the commands by place.
fn table(names: &[&str]) -> Option<(u64, Vec<u16>)> {
    const NONE: u16 = u16::MAX;
    // A multiplier that is as good as any to begin with.
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    for _ in 0..10_000_000 {
        seed = seed
            .wrapping_mul(0xd134_2543_de82_ef95)
            .wrapping_add(0x632b_e59b_d9b4_e019)
            | 1;
        let mut table = vec![NONE; 1 << name::BITS];
        let top = names.iter().enumerate().filter(|(_, name)| !name.contains('|'));
        let mut places = top.map(|(number, name)| (number, name::place(name.as_bytes(), seed)));
        let fits = places.all(|(number, place)| {
            let is_free = table[place] == NONE;
            table[place] = number as u16;
            is_free
        });
        if fits {
            return Some((seed, table));
        }
    }
    None
}
