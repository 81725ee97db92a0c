//! What a near cache has to know of commands (`commands/near.tsv`), beside the installed server: which
//! replies may be kept, and what a command changes.
//!
//! The server pushes the names of changed keys to a connection that tracks all of them. A command may change
//! less than is said of it, and never more.

use std::{
    collections::{BTreeMap, BTreeSet},
    mem::take,
};

use proxima_wire::{
    message::Class,
    resp::{Changes, Command, Handling, each_key, find},
};

use crate::{
    examples::{DATA, EXAMPLES, LIBRARY, SCRIPTS, SILENT, WITHOUT},
    live::told,
    requests::array,
    server::{Client, Server, Value},
};

/// A server with two connections, one of which hears of all changes.
struct World {
    server: Server,
    client: Client,
    tracking: Client,
    /// The commands that the server knows.
    known: BTreeSet<String>,
    /// What stands for words in braces, as bulk strings.
    bulks: BTreeMap<&'static str, Vec<u8>>,
    /// The data and what the examples need besides, as requests, and their number.
    data: (Vec<u8>, usize),
}

impl World {
    fn new() -> Option<Self> {
        let (server, mut client) = Server::start()?;
        let mut known = BTreeMap::new();
        told(&client.ask("COMMAND"), &mut known);
        let mut tracking = server.connect().unwrap();
        tracking.ask("HELLO 3");
        assert_eq!(tracking.ask("CLIENT TRACKING ON BCAST").text(), "+OK");
        let mut bulks = BTreeMap::new();
        let library = format!("${}\r\n{LIBRARY}\r\n", LIBRARY.len());
        bulks.insert("{library}", library.into_bytes());
        client.send(&message("FUNCTION LOAD {library}", &bulks));
        client.value();
        client.ask("SET s value");
        let told = [("{dump}", "DUMP s"), ("{functions}", "FUNCTION DUMP")];
        for (word, request) in told.into_iter().chain(SCRIPTS) {
            client.ask(request);
            bulks.insert(word, take(&mut client.bytes));
        }
        let scripts = SCRIPTS.iter().map(|(_, request)| request);
        let requests = DATA.iter().chain(scripts).map(|words| array(words));
        let is_known = |message: &Vec<u8>| known.contains_key(command_of(message).unwrap().name);
        let mut requests: Vec<_> = requests.filter(is_known).collect();
        requests.push(message("FUNCTION LOAD REPLACE {library}", &bulks));
        Some(Self {
            server,
            client,
            tracking,
            known: known.into_keys().collect(),
            bulks,
            data: (requests.concat(), requests.len()),
        })
    }

    /// The examples of commands that the server knows.
    fn examples(&self) -> Vec<(&'static str, &'static Command, Vec<u8>)> {
        let all = EXAMPLES.iter().filter_map(|&words| {
            let message = message(words, &self.bulks);
            let command = command_of(&message)?;
            let is_known = self.known.contains(command.name);
            is_known.then_some((words, command, message))
        });
        all.collect()
    }

    /// Only the data are there, and all changes have been told.
    fn reset(&mut self) {
        self.client.send(&self.data.0);
        for at in 0..self.data.1 {
            let reply = self.client.value();
            assert!(!matches!(reply, Value::Error(_)), "{at}: {reply:?}");
        }
        self.changed();
    }

    /// The keys that were told to have changed since the last time. `None`: all keys.
    fn changed(&mut self) -> Vec<Option<String>> {
        let mut keys = Vec::new();
        self.tracking.send(&array("PING"));
        loop {
            match self.tracking.value() {
                Value::Push(parts) if parts[1] == Value::Null => keys.push(None),
                Value::Push(parts) => {
                    let names = parts[1].list().iter();
                    keys.extend(names.map(|key| Some(key.text().to_owned())));
                }
                reply => {
                    assert_eq!(reply.text(), "+PONG");
                    return keys;
                }
            }
        }
    }

    fn ask(&mut self, message: &[u8]) -> Value {
        self.client.send(message);
        self.client.value()
    }
}

/// These words as a request, with bulk strings that the words in braces stand for.
fn message(words: &str, bulks: &BTreeMap<&str, Vec<u8>>) -> Vec<u8> {
    let mut message = array(words);
    for (word, bulk) in bulks {
        let with = format!("${}\r\n{word}\r\n", word.len());
        if let Some(at) = memchr::memmem::find(&message, with.as_bytes()) {
            message.splice(at..at + with.len(), bulk.iter().copied());
        }
    }
    message
}

fn command_of(message: &[u8]) -> Option<&'static Command> {
    Command::of(find(message).0)
}

/// The keys that a request names.
fn named(command: &Command, message: &[u8]) -> BTreeSet<String> {
    let mut keys = BTreeSet::new();
    each_key(command, message, false, &mut |key| {
        keys.insert(String::from_utf8_lossy(key.of(message)).into_owned());
    });
    keys
}

fn all_commands() -> impl Iterator<Item = &'static Command> {
    (0..Command::COUNT).filter_map(Command::of)
}

#[test]
fn a_command_changes_nothing_but_what_is_said_of_it() {
    let Some(mut world) = World::new() else { return };
    let (mut wrong, mut heard) = (Vec::new(), BTreeSet::new());
    let mut tried: BTreeSet<_> = WITHOUT.iter().map(|(name, _)| *name).collect();
    for (words, command, message) in world.examples() {
        world.reset();
        tried.insert(command.name);
        let reply = world.ask(&message);
        let changed = world.changed();
        let keys = named(command, &message);
        let is_said = |key: &Option<String>| match command.changes {
            Changes::Nothing => false,
            Changes::Keys => key.as_ref().is_some_and(|key| keys.contains(key)),
            Changes::Everything | Changes::Scripts => true,
        };
        if matches!(reply, Value::Error(_)) || !changed.iter().all(is_said) {
            wrong.push((words, command.changes, keys, changed, reply));
        } else if !changed.is_empty() {
            heard.insert(command.name);
        }
    }
    let missing: Vec<_> = all_commands()
        .filter(|command| world.known.contains(command.name))
        .filter(|command| command.has_keys() || command.is_write || command.changes != Changes::Nothing)
        .map(|command| command.name)
        .filter(|name| !tried.contains(name))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(missing.is_empty(), "without an example: {missing:?}");
    // Otherwise the test would show nothing.
    let excused = |name: &str| WITHOUT.iter().chain(SILENT).any(|(other, _)| *other == name);
    let silent: Vec<_> = all_commands()
        .filter(|command| tried.contains(command.name) && command.changes != Changes::Nothing)
        .map(|command| command.name)
        .filter(|name| !heard.contains(name) && !excused(name))
        .collect();
    assert!(silent.is_empty(), "nothing was pushed: {silent:?}");
    assert!(heard.len() > 90, "{heard:?}");
}

#[test]
fn a_command_that_waits_changes_its_keys_when_it_is_answered() {
    let Some(mut world) = World::new() else { return };
    world.reset();
    let mut waiting = world.server.connect().unwrap();
    waiting.send(&array("BLMOVE none d LEFT RIGHT 0"));
    let is_waiting = |about: Value| about.text().contains("blocked_clients:1");
    while !is_waiting(world.client.ask("INFO CLIENTS")) {}
    assert_eq!(world.changed(), []);
    world.client.ask("RPUSH none v");
    assert_eq!(waiting.value().text(), "v");
    let changed: BTreeSet<_> = world.changed().into_iter().flatten().collect();
    assert_eq!(changed, ["d", "none"].map(String::from).into());
}

#[test]
fn a_script_that_may_only_read_writes_nothing() {
    let Some(mut world) = World::new() else { return };
    world.reset();
    for words in [
        "EVAL_RO return(redis.call('SET',KEYS[1],'v')) 1 s",
        "EVAL_RO return(redis.call('FLUSHALL')) 0",
        "EVALSHA_RO {write} 1 s",
        "FCALL_RO write 1 s",
    ] {
        let message = message(words, &world.bulks);
        assert_eq!(command_of(&message).unwrap().changes, Changes::Nothing);
        let reply = world.ask(&message);
        assert!(matches!(reply, Value::Error(_)), "{words}: {reply:?}");
        assert_eq!(world.changed(), [], "{words}");
    }
}

#[test]
fn a_kept_reply_holds_until_its_key_changes() {
    let Some(mut world) = World::new() else { return };
    let (mut wrong, mut tried) = (Vec::new(), BTreeSet::new());
    for (words, command, message) in world.examples() {
        if !command.is_kept {
            continue;
        }
        tried.insert(command.name);
        world.reset();
        let (mut replies, mut changed) = (Vec::new(), Vec::new());
        for between in ["PING", "SET other new", "RPUSH another v", "FLUSHDB"] {
            world.ask(&message);
            replies.push(take(&mut world.client.bytes));
            changed.append(&mut world.changed());
            world.client.ask(between);
            world.changed();
        }
        world.ask(&message);
        let without = take(&mut world.client.bytes);
        replies.dedup();
        // A reply that is the same without the key would show nothing.
        if replies.len() != 1 || replies[0] == without || !changed.is_empty() {
            wrong.push((words, changed, replies, without));
        }
    }
    let missing: Vec<_> = all_commands()
        .filter(|command| command.is_kept && world.known.contains(command.name))
        .map(|command| command.name)
        .filter(|name| !tried.contains(name))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(missing.is_empty(), "without an example: {missing:?}");
}

fn command(name: &str) -> &'static Command {
    let found = all_commands().find(|command| command.name == name);
    found.unwrap_or_else(|| panic!("no command {name}"))
}

#[test]
fn only_replies_that_follow_from_one_key_are_kept() {
    let mut wrong = Vec::new();
    for names in [
        "get getrange strlen bitcount bitfield_ro",
        "hget hmget hgetall hkeys hvals hlen hexists hstrlen",
        "lrange lindex llen lpos",
        "smembers sismember smismember scard",
        "zrange zrangebyscore zrevrange zscore zmscore zrank zcard",
        "geosearch georadius_ro geopos geodist geohash",
        "xrange xrevrange xlen",
        "type expiretime pexpiretime hexpiretime hpexpiretime",
    ] {
        let not_kept = names.split(' ').filter(|name| !command(name).is_kept);
        wrong.extend(not_kept.map(|name| (name, "its reply follows from one key")));
    }
    for (names, why) in [
        ("ttl pttl httl hpttl", "a clock"),
        ("xpending xinfo|stream xinfo|consumers", "a clock"),
        ("srandmember hrandfield zrandmember vrandmember", "chance"),
        ("vsim", "an approximation"),
        ("scan hscan sscan zscan", "a cursor"),
        ("object|encoding object|freq object|idletime", "internals"),
        ("memory|usage dump vinfo vlinks", "internals"),
        ("mget exists sinter sunion sdiff lcs pfcount", "several keys"),
        ("zunion zinter zdiff sintercard zintercard", "several keys"),
        ("sort sort_ro", "patterns name other keys"),
        ("eval eval_ro evalsha evalsha_ro fcall fcall_ro", "scripts"),
        ("getex getdel getset touch set incr spop lpop", "an effect"),
        ("bitfield georadius georadiusbymember", "an effect"),
        ("xread xreadgroup blpop blmove", "it may wait for others"),
        ("keys dbsize randomkey time ping", "it has no key"),
    ] {
        let kept = names.split(' ').filter(|name| command(name).is_kept);
        wrong.extend(kept.map(|name| (name, why)));
    }
    for command in all_commands().filter(|command| command.is_kept) {
        let has_flag = |flag| command.flags.contains(&flag);
        let reads = command.class == Class::Read && has_flag("readonly") && !has_flag("movablekeys");
        let [first, last, _] = command.positions;
        let is_plain = command.changes == Changes::Nothing && !command.is_write && !command.is_blocking;
        if !reads || !is_plain || first < 1 || first != last || command.served != Handling::Key {
            wrong.push((command.name, "it has to read one key"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn changes_are_those_that_flags_tell_or_hide() {
    let mut wrong = Vec::new();
    for (changes, names) in [
        (Changes::Keys, "set del mset incr expire persist getex getdel"),
        (Changes::Keys, "copy rename move restore migrate xgroup|create"),
        (Changes::Keys, "sort georadius pfcount pfmerge"),
        (Changes::Keys, "xreadgroup blpop blmove bzmpop"),
        (Changes::Everything, "flushall flushdb swapdb debug replicaof"),
        (Changes::Scripts, "eval evalsha fcall"),
        (Changes::Nothing, "eval_ro evalsha_ro fcall_ro script|load"),
        (
            Changes::Nothing,
            "get mget touch exists sort_ro xread object|freq",
        ),
        (Changes::Nothing, "ping hello client|setname publish subscribe"),
        (Changes::Nothing, "multi exec discard watch"),
        (Changes::Nothing, "function|load function|flush function|restore"),
    ] {
        let others = names.split(' ').filter(|name| command(name).changes != changes);
        wrong.extend(others.map(|name| (name, command(name).changes)));
    }
    // Libraries of functions are the only writes that change no data: a new one has to be looked at.
    for command in all_commands().filter(|command| command.is_write) {
        let is_library = command.name.starts_with("function|");
        if (command.changes == Changes::Nothing) != is_library {
            wrong.push((command.name, command.changes));
        }
        if command.changes == Changes::Keys && !command.has_keys() {
            wrong.push((command.name, command.changes));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
