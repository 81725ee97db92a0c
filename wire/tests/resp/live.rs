//! The table of commands beside `COMMAND` of the installed server. What that server does not know is fine,
//! and so is what only it knows; where both know a command they must agree.

use std::collections::BTreeMap;

use proxima_wire::resp::{Command, Handling, each_key, find};

use crate::{
    requests::array,
    server::{Server, Value},
};

/// What a server tells of a command: arity, flags, positions of keys.
pub(crate) type Told = (i64, Vec<String>, Vec<i64>);

/// Fills in what is told of commands and their subcommands, by name.
pub(crate) fn told(commands: &Value, all: &mut BTreeMap<String, Told>) {
    for command in commands.list() {
        let parts = command.list();
        let flags = parts[2].list().iter().map(|flag| flag.text()[1..].to_owned());
        let mut flags: Vec<_> = flags.collect();
        flags.sort();
        let positions = parts[3..6].iter().map(Value::number).collect();
        let name = parts[0].text().to_lowercase();
        all.insert(name, (parts[1].number(), flags, positions));
        told(&parts[9], all);
    }
}

#[test]
fn the_table_agrees_with_the_installed_server() {
    let Some((_server, mut client)) = Server::start() else {
        return;
    };
    let mut all = BTreeMap::new();
    told(&client.ask("COMMAND"), &mut all);
    assert!(all.len() > 300, "{} commands", all.len());
    let mut differ = Vec::new();
    for number in 0..Command::COUNT {
        let command = Command::of(number).unwrap();
        let Some((arity, flags, positions)) = all.get(command.name) else {
            continue;
        };
        let ours: Vec<_> = command.positions.into_iter().map(i64::from).collect();
        // Newer servers take more arguments of some commands: an older one then refuses what we let pass.
        let arities = match (*arity, i64::from(command.arity)) {
            (theirs, ours) if ours < 0 => theirs.abs() >= -ours,
            (theirs, ours) => theirs == ours,
        };
        let is_agreed = command.served == Handling::Refused || agree(flags, command.flags);
        if !arities || *positions != ours || !is_agreed {
            differ.push((command, arity, flags, positions));
        }
    }
    assert!(differ.is_empty(), "{differ:#?}");
}

/// Do the flags mean the same for a proxy? Others are the servers' own affair and differ between versions.
fn agree(theirs: &[String], ours: &[&str]) -> bool {
    let matters = ["write", "readonly", "blocking", "pubsub", "movablekeys"];
    matters
        .iter()
        .all(|flag| theirs.iter().any(|other| other == flag) == ours.contains(flag))
}

#[test]
fn keys_are_those_that_the_installed_server_finds() {
    let Some((_server, mut client)) = Server::start() else {
        return;
    };
    for words in [
        "GET k",
        "MSET a 1 b 2",
        "XREAD COUNT 2 BLOCK 5 STREAMS a b 0 0",
        "XREADGROUP GROUP STREAMS c STREAMS a b > >",
        "EVAL s 2 a b c",
        "ZUNIONSTORE d 2 a b",
        "ZUNION 2 a b",
        "LMPOP 2 a b LEFT",
        "BLPOP a b c 0",
        "BZMPOP 0 1 a MIN",
        "GEORADIUS g 1 2 3 m STORE d",
        "GEORADIUSBYMEMBER g a 3 m STOREDIST d",
        "BITOP AND d a b",
        "SORT a BY w GET x STORE d",
        "SORT a STORE d STORE e ALPHA",
        "SORT store BY STORE GET STORE LIMIT 0 5 STORE e",
        "OBJECT ENCODING k",
        "XGROUP CREATE k g 0",
        "MEMORY USAGE k",
        "RENAME a b",
        "SINTERSTORE d a b",
        "PFMERGE d a b",
        "PFCOUNT a b",
        "LCS a b",
        "SMOVE a b m",
        "FCALL f 1 a b",
        "SINTERCARD 2 a b LIMIT 1",
    ] {
        let message = array(words);
        let theirs = client.ask(&format!("COMMAND GETKEYS {words}"));
        let theirs: Vec<_> = theirs.list().iter().map(|key| key.text().to_owned()).collect();
        let mut ours = Vec::new();
        each_key(
            Command::of(find(&message).0).unwrap(),
            &message,
            false,
            &mut |key| {
                ours.push(String::from_utf8_lossy(key.of(&message)).into_owned());
            },
        );
        assert_eq!(ours, theirs, "{words}");
    }
}

/// `COMMAND GETKEYS` tells the first one of `GEORADIUS`, or both.
#[test]
fn of_several_words_store_the_last_one_names_the_key_that_the_installed_server_writes() {
    let Some((_server, mut client)) = Server::start() else {
        return;
    };
    client.ask("GEOADD g 1 2 STORE");
    client.ask("RPUSH l 1");
    for words in [
        "SORT l STORE d STORE e",
        "SORT l STORE d BY STORE GET STORE LIMIT 0 5 STORE e ASC",
        "GEORADIUS g 1 2 3 m STORE d STORE e",
        "GEORADIUS g 1 2 3 m STOREDIST d COUNT 5 STORE e",
        "GEORADIUSBYMEMBER g STORE 3 m STORE d STOREDIST e DESC",
    ] {
        client.ask("DEL d e");
        client.ask(words);
        assert_eq!(client.ask("EXISTS d").number(), 0, "{words}");
        assert_eq!(client.ask("EXISTS e").number(), 1, "{words}");
        let (message, mut ours) = (array(words), Vec::new());
        let command = Command::of(find(&message).0).unwrap();
        each_key(command, &message, false, &mut |key| ours.push(key.of(&message)));
        assert_eq!(ours[1..], [b"e"], "{words}");
    }
}
