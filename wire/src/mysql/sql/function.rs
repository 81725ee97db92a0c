//! Functions of the servers that do more than compute a value.
//!
//! SLEEP and BENCHMARK are reads: they take time and change nothing. UUID, RAND and NOW are reads as well:
//! their results differ from call to call on one server, too.

/// The side effect of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    Nothing,
    /// Its value depends on the connection, or on the locks of one server.
    ReadsSession,
    /// It takes or releases locks by name, which no tracker tells.
    ChangesSession,
    /// With an argument it changes what it returns without one; no tracker tells that.
    LastInsertId,
    /// It takes a number from a sequence.
    Writes,
    /// It reads files of one server, waits for one server's replication, or changes a group of servers.
    Unknown,
}

/// The first words of names of functions that concern one server.
const FAMILIES: [&[u8]; 5] = [
    b"asynchronous_connection_failover_",
    b"group_replication_",
    b"service_get_",
    b"service_release_",
    b"spider_",
];

/// The effect of the function with this name, in any case. What a name with other characters than ASCII's
/// letters, digits, `_` and `$` means depends on how the server compares names.
pub(super) fn effect(name: &[u8]) -> Effect {
    let is_plain = |&byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    if !name.iter().all(is_plain) {
        return Effect::Unknown;
    }
    let is_one_of = |names: &[&[u8]]| names.iter().any(|other| other.eq_ignore_ascii_case(name));
    // No name below is shorter, and most functions have shorter names.
    if name.len() < "setval".len() {
        return Effect::Nothing;
    }
    if is_one_of(&[b"last_insert_id"]) {
        Effect::LastInsertId
    } else if is_one_of(&[
        b"connection_id",
        b"found_rows",
        b"is_free_lock",
        b"is_used_lock",
        b"lastval",
        b"ps_current_thread_id",
        b"row_count",
        b"wsrep_last_seen_gtid",
        b"wsrep_last_written_gtid",
    ]) {
        Effect::ReadsSession
    } else if is_one_of(&[b"get_lock", b"release_all_locks", b"release_lock"]) {
        Effect::ChangesSession
    } else if is_one_of(&[b"nextval", b"setval"]) {
        Effect::Writes
    } else if is_one_of(&[
        b"load_file",
        b"master_gtid_wait",
        b"master_pos_wait",
        b"source_pos_wait",
        b"wait_for_executed_gtid_set",
        b"wait_until_sql_thread_after_gtids",
        b"wsrep_sync_wait_upto_gtid",
    ]) || is_of_family(name)
    {
        Effect::Unknown
    } else {
        Effect::Nothing
    }
}

fn is_of_family(name: &[u8]) -> bool {
    FAMILIES.iter().any(|family| {
        name.get(..family.len())
            .is_some_and(|begin| begin.eq_ignore_ascii_case(family))
    })
}
