//! `stats`: memcached shows every line that the embedded server shows, with the same number where both count
//! the same.

use std::collections::BTreeMap;

use crate::{both::Both, server::Embedded};

fn lines(reply: &[u8]) -> BTreeMap<String, String> {
    let text = String::from_utf8_lossy(reply).into_owned();
    let stats = text
        .strip_suffix("END\r\n")
        .unwrap_or_else(|| panic!("no END after {text:?}"));
    let line = |line: &str| {
        let (name, value) = line.strip_prefix("STAT ")?.split_once(' ')?;
        Some((name.to_owned(), value.to_owned()))
    };
    stats
        .lines()
        .map(|text| line(text).unwrap_or_else(|| panic!("{text:?}")))
        .collect()
}

#[test]
fn embedded_store_counts_as_memcached_does() {
    let mut both = Both::start();
    let commands = [
        "set a 0 0 1|1",
        "set b 0 0 1|1",
        "add a 0 0 1|2",
        "replace c 0 0 1|1",
        "append a 0 0 1|2",
        "get a b c",
        "gets a",
        "gat 100 a",
        "gat 0 c",
        "touch a 0",
        "touch c 0",
        "incr a 1",
        "incr c 1",
        "decr a 1",
        "decr c 1",
        "incr a x",
        "delete b",
        "delete b",
        "cas a 0 0 1 {cas a}|3",
        "cas a 0 0 1 {new a}|4",
        "cas c 0 0 1 {cas c}|4",
        "mg a v",
        "mg c v",
        "mg a T100 v",
        "ms a 1|5",
        "ms a 1 C{old a}|6",
        "ma a",
        "ma c",
        "md c",
        "md a I",
        "md a",
        "ms d 1|1",
        "flush_all",
    ];
    for command in commands {
        both.same(&(command.replace('|', "\r\n") + "\r\n"));
    }
    let misses = both.misses;
    let [ours, mut theirs] = both.replies("stats\r\n").map(|reply| lines(&reply));
    for name in ["cmd_get", "get_misses"] {
        let count: u64 = theirs[name].parse().unwrap();
        theirs.insert(name.to_owned(), (count - misses).to_string());
    }
    for name in ours.keys() {
        assert!(theirs.contains_key(name), "memcached has no {name}");
    }
    let differ = [
        // These are about the process, its time and its connections.
        "pid",
        "uptime",
        "time",
        "version",
        "threads",
        "curr_connections",
        "total_connections",
        "rejected_connections",
        // These differ: the size of an item, the time at which memory is reclaimed, and that memcached counts
        // no new item for an increment.
        "bytes",
        "reclaimed",
        "curr_items",
        "total_items",
    ];
    let same = |stats: &BTreeMap<String, String>| {
        let mut stats = stats.clone();
        stats.retain(|name, _| ours.contains_key(name) && !differ.contains(&name.as_str()));
        stats
    };
    assert_eq!(same(&ours), same(&theirs));
    let [ours, theirs] = both.replies("stats settings\r\n").map(|reply| lines(&reply));
    for (name, value) in &ours {
        let is_our_own = ["num_threads", "dump_enabled", "hash_algorithm"].contains(&name.as_str());
        assert!(is_our_own || theirs.get(name) == Some(value), "{name} {value}");
    }
    both.same("stats reset\r\n");
    let [ours, _] = both.replies("stats\r\n").map(|reply| lines(&reply));
    assert_eq!((ours["cmd_get"].as_str(), ours["cmd_set"].as_str()), ("0", "0"));
}

#[test]
fn embedded_store_leaves_process_and_connection_stats_to_its_caller() {
    let mut server = Embedded::start();
    server.ahead = 123_000;
    let stats = lines(&server.send(b"stats\r\n"));
    let get = |name: &str| stats[name].as_str();
    assert_eq!((get("pid"), get("uptime"), get("threads")), ("4711", "123", "4"));
    assert_eq!((get("curr_connections"), get("total_connections")), ("1", "2"));
    assert_eq!(
        (get("version"), get("limit_maxbytes")),
        ("1.6.18-proxima", "67108864")
    );
    assert_eq!(
        String::from_utf8_lossy(&server.send(b"stats conns\r\n")),
        "STAT 22:addr tcp:127.0.0.1:11211\r\nSTAT 22:state conn_listening\r\nSTAT 22:secs_since_last_cmd 7\r\n\
         STAT 23:addr tcp:127.0.0.1:40000\r\nSTAT 23:listen_addr tcp:127.0.0.1:11211\r\n\
         STAT 23:state conn_parse_cmd\r\nSTAT 23:secs_since_last_cmd 0\r\nEND\r\n"
    );
    assert_eq!(server.send(b"stats items\r\n"), b"END\r\n");
    assert_eq!(lines(&server.send(b"stats slabs\r\n"))["active_slabs"], "0");
    server.send(b"set a 0 0 1\r\n1\r\n");
    let items = lines(&server.send(b"stats items\r\n"));
    assert_eq!(items["items:1:number"], "1");
    let slabs = lines(&server.send(b"stats slabs\r\n"));
    assert_eq!(
        (slabs["active_slabs"].as_str(), slabs["1:used_chunks"].as_str()),
        ("1", "1")
    );
    assert_eq!(slabs["1:cmd_set"], "1");
    assert_eq!(server.send(b"version\r\n"), b"VERSION 1.6.18-proxima\r\n");
    assert_eq!(
        server.send(b"stats cachedump 1 1\r\n"),
        b"CLIENT_ERROR stats cachedump not allowed\r\n"
    );
    assert_eq!(server.send(b"quit\r\n"), b"");
}
