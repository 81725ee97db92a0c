//! The commands that twemproxy takes, and where its clients are answered as it answers them.

use std::sync::LazyLock;

use proxima_wire::{
    message::{Bad, Outcome, Parse, Parsed, Request},
    resp::{self, Args, Command, INLINE, Limits, TRANSACTION},
};

use super::{
    append_error,
    state::{LOCKED, clear, is},
};
use crate::protocol::{Access, Plan, ReplyStyle, Session};

/// Its commands, and `hello` and `client` beside them: without these the clients of today cannot connect.
const NAMES: &str = "
    persist pttl ttl type dump decr get getdel incr strlen hgetall hkeys hlen hvals llen scard smembers zcard
    expire expireat pexpire pexpireat move append decrby getbit getset incrby incrbyfloat setnx hexists hget hstrlen
    lindex rpoplpush sismember zrank zrevrank zscore
    getrange psetex setbit setex setrange hincrby hincrbyfloat hsetnx lrange lrem lset ltrim smove zcount zlexcount
    zincrby zremrangebylex zremrangebyrank zremrangebyscore
    linsert lmove
    sort copy bitcount bitpos bitfield exists getex set hdel hmget hmset hscan hset hrandfield lpush lpushx rpush
    rpushx lpop rpop lpos sadd sdiff sdiffstore sinter sinterstore srem sunion sunionstore srandmember sscan spop
    smismember pfadd pfmerge pfcount zadd zdiff zdiffstore zinter zinterstore zmscore zpopmax zpopmin zrandmember
    zrange zrangebylex zrangebyscore zrangestore zrem zrevrange zrevrangebylex zrevrangebyscore zscan zunion
    zunionstore geoadd geodist geohash geopos georadius georadiusbymember geosearch geosearchstore restore
    mget del unlink touch mset
    eval evalsha
    ping quit auth command lolwut
    hello client";

/// For each command, by number: it is one of them, or a subcommand of one.
static TAKEN: LazyLock<[bool; Command::COUNT as usize]> = LazyLock::new(|| {
    let mut taken = [false; Command::COUNT as usize];
    for (name, taken) in Command::names().iter().zip(&mut taken) {
        let whole = name.split('|').next();
        *taken = NAMES.split_whitespace().any(|known| Some(known) == whole);
    }
    taken
});

/// Reads a request, and closes the connection at what twemproxy does not understand. It is not inlined, so
/// that the reading of other listeners' requests is.
#[inline(never)]
pub(super) fn request(
    parse: &mut Parse,
    bytes: &[u8],
    limits: &Limits,
    all_commands: bool,
) -> Parsed<Request> {
    let read = resp::request(parse, bytes, limits);
    let takes =
        |request: &Request| all_commands || TAKEN.get(usize::from(request.command)).copied().unwrap_or(false);
    match read {
        Parsed::Head(request) if !takes(&request) => Parsed::Bad(Bad::fatal(b"")),
        Parsed::Bad(bad) => Parsed::Bad(bad.mute()),
        read => read,
    }
}

/// Plans the requests that twemproxy answers in its own way; `None` if the request is planned as any other.
pub(super) fn plan(
    session: &mut Session,
    request: &Request,
    message: &[u8],
    all_commands: bool,
    out: &mut Vec<u8>,
) -> Option<Plan> {
    if request.command == INLINE || request.command >= TRANSACTION {
        return None;
    }
    let mut args = Args::of(message);
    let count = args.left();
    args.next();
    let command = Command::of(request.command)?;
    let is_refused = match command.name {
        "quit" => return Some(Plan::Close),
        "auth" if count == 2 => {
            auth(session, args.text().unwrap_or_default(), out)?;
            return Some(Plan::Answer);
        }
        _ if is(session, LOCKED) => return None,
        _ if all_commands => false,
        "ping" | "auth" => count != 1,
        // Its arguments are pairs behind the name.
        "mset" => count % 2 == 0 || count < 3,
        // It passes a wrong number on where the right one is not fixed.
        _ => !command.takes(count) && (command.arity > 0 || count < 2),
    };
    is_refused.then_some(Plan::CloseAsFailed)
}

/// Answers `AUTH`; `None` if servers are asked.
fn auth(session: &mut Session, password: &[u8], out: &mut Vec<u8>) -> Option<()> {
    match session.access {
        Access::Pass => return None,
        Access::Open => append_error("ERR Client sent AUTH, but no password is set", out),
        Access::Accounts(_) if session.access.admits(b"default", password) => {
            clear(session, LOCKED);
            out.extend_from_slice(b"+OK\r\n");
        }
        Access::Accounts(_) => append_error("ERR invalid password", out),
    }
    Some(())
}

/// The error of a login: it is what servers say to a client that has not logged in.
const NO_LOGIN: &str = "NOAUTH Authentication required.";

/// Appends an error that no server has answered.
pub(super) fn error(text: &str, out: &mut Vec<u8>) {
    let is_about_login = text.contains("login refused: ");
    match is_about_login && (text.contains("NOAUTH") || text.contains("WRONGPASS")) {
        true => append_error(NO_LOGIN, out),
        false => append_error(&format!("ERR {text}"), out),
    }
}

/// The answer to a part of a split request for which a server has answered this error: twemproxy knows only
/// values and numbers there.
pub(super) const fn error_of_part(outcome: Outcome) -> Option<&'static [u8]> {
    match outcome {
        Outcome::Busy | Outcome::TryAgain | Outcome::RemoteError | Outcome::ClientError => {
            Some(b"-ERR Invalid argument\r\n")
        }
        _ => None,
    }
}

/// The error for a client that has not said the password.
pub(super) const fn not_logged_in(reply_style: ReplyStyle, own: &'static str) -> &'static str {
    match reply_style {
        ReplyStyle::Own | ReplyStyle::Mcrouter { .. } => own,
        ReplyStyle::Twemproxy { .. } => "NOAUTH Authentication required",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_of_twemproxy_is_known() {
        for name in NAMES.split_whitespace() {
            assert!(Command::names().contains(&name), "{name}");
        }
    }
}
