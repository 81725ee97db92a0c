//! Each field that can grow is counted by a row of the table in `docs/failure-modes.md`, whose bounds
//! `tests/test_kept_memory.py` holds. A new field fails here until a row is named for it.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The folders whose structs are read.
const FOLDERS: [&str; 4] = ["client", "upstream", "peers", "admin"];
/// What can grow.
const GROWING: [&str; 17] = [
    "Vec<",
    "VecDeque<",
    "Queue<",
    "HashMap<",
    "HashSet<",
    "BTreeMap<",
    "BTreeSet<",
    "IntoIter<",
    "String",
    "PathBuf",
    "Table<",
    "Slab<",
    "Stream",
    "Box<[",
    "Arc<[",
    "Arc<str>",
    "JoinSet<",
];

const BUFFERS: &str = "a client's requests and replies";
const LINES: &str = "a line of keys, an upload, a dump";
const JOINS: &str = "joined replies";
const MESSAGES: &str = "messages to subscribers";
const WAITS: &str = "requests that wait for a connection";
const LANES: &str = "connections to servers";
const LOGINS: &str = "logins";
const LINKS: &str = "links to peers of a fleet";
const WORKER: &str = "what a worker needs for one request";
const ENTRIES: &str = "one entry for each client, server and listener";
const ADMIN: &str = "the admin and the health port";

/// The row that counts each field.
const ROWS: [(&str, &[&str]); 11] = [
    (
        BUFFERS,
        &[
            "Client.stream",
            "EarlyReplies.bytes",
            "JoinedReply.failure",
            "SharedReplyRest.bytes",
            "SharedReplyRest.head",
            "Slots.queue",
            "State.Large",
            "State.Collected",
        ],
    ),
    (
        LINES,
        &[
            "KeyGroups.groups",
            "KeyGroups.keys",
            "KeyGroups.next",
            "KeyGroups.order",
            "KeyGroups.part",
            "KeyGroups.table",
            "Keys.head",
            "Upload.changes",
            "Upload.lanes",
        ],
    ),
    (
        JOINS,
        &[
            "SpreadRequests.cursors",
            "SpreadRequests.orders",
            "SpreadRequests.requests",
            "LeavingReply.excerpts",
        ],
    ),
    (MESSAGES, &["Lane.confirmation"]),
    (
        WAITS,
        &[
            "Change.message",
            "Change.names",
            "Change.parts",
            "Dedicated.passing",
            "Dedicated.queue",
            "Part.message",
            "Question.login",
            "Question.message",
            "LanePurpose.Answer",
        ],
    ),
    (
        LANES,
        &[
            "Askers.all",
            "Askers.free",
            "Cancel.message",
            "Cancels.queue",
            "Lane.changes",
            "Lane.held",
            "Lane.limit",
            "Lane.parts",
            "Lane.queued_changes",
            "Lane.stream",
            "Lane.unanswered",
            "Lane.unwritten",
            "Lane.waiters",
            "LaneChanges.queued",
            "LaneChanges.unanswered",
            "LaneChanges.waiting",
            "Replacement.changes",
            "Replacement.held",
            "Replacement.unwritten",
            "Replacement.waiters",
            "Unwritten.message",
        ],
    ),
    (LOGINS, &["LoginEntry.words", "Logins.entries"]),
    (
        LINKS,
        &["Link.stream", "Links.outward", "Links.table", "Event.Lost"],
    ),
    (
        WORKER,
        &[
            "Clients.keys",
            "Clients.pending",
            "Facts.greeting",
            "Servers.before",
            "Servers.ending",
            "Servers.uploads",
        ],
    ),
    (
        ENTRIES,
        &[
            "ListenSockets.address",
            "ListenSockets.sockets",
            "Bulk.idle",
            "Clients.seat_queue",
            "Clients.table",
            "Closed.Address",
            "Closing.lanes",
            "Dedicated.idle",
            "FullLogin.words",
            "FullLogins.0",
            "Open.clients",
            "Open.hosts",
            "Register.announced",
            "Register.listening",
            "Register.parts",
            "Room.waiting",
            "Servers.by_member",
            "Servers.closings",
            "Servers.lanes",
            "Servers.woken",
            "Shared.others",
            "Subscriptions.lanes",
            "Subscriptions.missing",
            "Tally.workers",
        ],
    ),
    (
        ADMIN,
        &[
            "BadQuery.NoAddress",
            "BadQuery.NoFlag",
            "BadQuery.NoNumber",
            "BadQuery.Twice",
            "BadQuery.UnknownName",
            "BoundSessions.state",
            "ByHand.member",
            "CachedCounters.text",
            "Copy.why",
            "Counts.failed",
            "Counts.listeners",
            "Counts.members",
            "Counts.pools",
            "Crowd.seats",
            "Crowd.tasks",
            "Destinations.all",
            "Events.events",
            "Events.process",
            "Expansion.0",
            "Facts.members",
            "Files.prefix",
            "Filter.listener",
            "Filter.prefix",
            "Filter.route",
            "Forbidden.Host",
            "Forbidden.Origin",
            "Health.checks",
            "Health.sentence",
            "History.points",
            "HotKey.key",
            "Line.member",
            "Line.pool",
            "Lines.clients",
            "Lines.descriptors",
            "Lines.errors",
            "Lines.hit_ratio",
            "Lines.p99_us",
            "Lines.rss_bytes",
            "Lines.requests",
            "Listener.address",
            "Minute.0",
            "MysqlConnection.address",
            "MysqlConnection.pool",
            "MysqlMember.address",
            "MysqlMember.name",
            "MysqlMember.sessions",
            "MysqlMember.why",
            "MysqlPool.members",
            "MysqlPool.name",
            "MysqlPool.writer",
            "MysqlSession.client",
            "MysqlSession.schema",
            "MysqlSession.state",
            "MysqlSession.user",
            "MysqlSessions.sessions",
            "MysqlSessions.workers",
            "MysqlStatus.pools",
            "Node.children",
            "Node.handle",
            "Node.member",
            "Node.pool",
            "Order.drain",
            "Order.name",
            "Order.writer",
            "OrderRequest.member",
            "OrderRequest.pool",
            "Page.configuration",
            "Page.listeners",
            "Page.nodes",
            "Page.text",
            "Query.0",
            "Rates.0",
            "Refusal.0",
            "Reserve.0",
            "RoleRow.role",
            "RoleRow.role_why",
            "Row.address",
            "Row.member",
            "Row.name",
            "Row.node",
            "Row.numa_nodes",
            "Row.pod",
            "Row.pod_uid",
            "Row.pool",
            "Row.resolves_to",
            "Row.uid",
            "Row.version",
            "Row.why",
            "Row.zone",
            "Sent.drain",
            "Sent.r",
            "Sent.writer",
            "SessionFacts.schema",
            "SessionFacts.user",
            "SessionPage.sessions",
            "SessionQuery.pool",
            "RequestRow.client",
            "RequestRow.key",
            "RequestRow.listener",
            "RequestRow.outcome",
            "Row.statement",
            "Row.steps",
            "SessionQuery.state",
            "SessionQuery.user",
            "Slow.process",
            "Slow.requests",
            "State.watchers",
            "Status.by_hand",
            "Status.members",
            "Status.orders",
            "Status.pool",
            "Status.preferred",
            "Status.process",
            "Status.writer",
            "Step.outcome",
            "Step.pool",
            "Step.server",
            "Step.why",
            "StepRow.text",
            "Tokens.0",
            "TokensError.Empty",
            "TokensError.Unfit",
            "TokensError.Unreadable",
            "Traffic.keys",
            "Traffic.nodes",
            "Traffic.pools",
            "Value.Text",
            "Way.nodes",
            "Way.steps",
            "Way.text",
        ],
    ),
];

/// Rows that count what other folders keep (the session in `protocol`, scripts in `route`), or what a server
/// may send.
const WITHOUT_FIELDS: [&str; 3] = [
    "a client's session",
    "a message without an end",
    "requests in steps",
];

fn sources(folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).unwrap();
            found.push(text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned());
        }
    }
}

/// The name behind `keyword` in the line that begins an item.
fn named<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let (before, behind) = line.split_once(keyword)?;
    let is_item = before.is_empty() || before.starts_with("pub") && before.ends_with(' ');
    let end = behind.find(|c: char| !c.is_alphanumeric() && c != '_')?;
    is_item.then_some(&behind[..end])
}

fn grows(kind: &str) -> bool {
    let is_part = |at: usize| kind[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
    GROWING
        .iter()
        .any(|growing| kind.match_indices(growing).any(|(at, _)| !is_part(at)))
}

/// The fields and variants in a source that can grow, as `Type.field`.
fn growing_fields(text: &str) -> BTreeSet<String> {
    let (mut found, mut of, mut part) = (BTreeSet::new(), None, String::new());
    for line in text.lines() {
        let code = line.split("//").next().unwrap();
        if let Some(name) = named(code, "struct ").or_else(|| named(code, "enum ")) {
            of = code.ends_with('{').then_some(name);
            if code.contains('(') && grows(code) {
                found.insert(format!("{name}.0"));
            }
            continue;
        }
        let Some(name) = of else { continue };
        if code == "}" {
            of = None;
            continue;
        }
        let word: String = code
            .trim_start()
            .trim_start_matches("pub(in crate::client) ")
            .trim_start_matches("pub(in crate::upstream) ")
            .trim_start_matches("pub(super) ")
            .trim_start_matches("pub(crate) ")
            .trim_start_matches("pub ")
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect();
        // The fields of a variant are told by the variant's name.
        let is_inner = code.starts_with("        ");
        if !word.is_empty() && !is_inner {
            part = word;
        }
        let behind = code.split_once([':', '(', '{']).map_or("", |(_, behind)| behind);
        // What is borrowed is kept elsewhere.
        if grows(behind) && !code.contains(": &'") {
            found.insert(format!("{name}.{part}"));
        }
    }
    found
}

#[test]
fn each_field_that_can_grow_is_counted_by_a_row_of_the_table() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = Vec::new();
    for folder in FOLDERS {
        sources(&root.join("src").join(folder), &mut texts);
    }
    let found: BTreeSet<String> = texts.iter().flat_map(|text| growing_fields(text)).collect();
    let rows: BTreeMap<&str, &str> = ROWS
        .iter()
        .flat_map(|(row, fields)| fields.iter().map(move |field| (*field, *row)))
        .collect();
    let unnamed: Vec<_> = found
        .iter()
        .filter(|field| !rows.contains_key(&***field))
        .collect();
    assert!(
        unnamed.is_empty(),
        "no row of the table in docs/failure-modes.md counts {unnamed:?}: bound and count them, and name them in \
         {}",
        file!()
    );
    let gone: Vec<_> = rows.keys().filter(|field| !found.contains(**field)).collect();
    assert!(gone.is_empty(), "these fields are gone, or do not grow: {gone:?}");
    let docs = fs::read_to_string(root.join("../docs/failure-modes.md")).unwrap();
    for row in ROWS.iter().map(|(row, _)| row).chain(&WITHOUT_FIELDS) {
        assert!(
            docs.contains(&format!("\n| {row} | ")),
            "docs/failure-modes.md has no row `{row}`"
        );
    }
}

#[test]
fn fields_are_found_in_structs_and_variants_and_nowhere_else() {
    let text = "pub(super) struct A {\n    /// Vec<u8>\n    pub(super) a: Vec<u8>,\n    b: u32,\n    pub c: \
                Option<Box<[u8]>>,\n}\nstruct B(VecDeque<u8>);\nenum C {\n    D(String),\n    E {\n        f: \
                Vec<u8>,\n    },\n    G(u8),\n}\nfn h() {\n    let i: Vec<u8> = Vec::new();\n}\n";
    let found = growing_fields(text);
    assert_eq!(
        found,
        ["A.a", "A.c", "B.0", "C.D", "C.E"].map(String::from).into()
    );
    assert!(!grows("MyVec<u8>, Joined, Upstream") && grows("Mutex<Vec<u8>>"));
}
