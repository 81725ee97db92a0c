//! The replies of Redis that may be kept, by the data of commands.

use proxima_wire::{
    message::{Outcome, Reply, Request},
    resp::{self, Changes, Command, DECLARED},
};

use super::{
    Redis,
    identity::{Identity, User},
    number,
};
use crate::protocol::{Cacheable, ChangeScope, Fit, Requests, ValueFrame};

/// The bytes of a reply to `MGET` for one key before the reply to `GET`.
const LIST_OF_ONE: &[u8] = b"*1\r\n";

fn is_mget(request: &Request) -> bool {
    is_one_of(request, &["mget"])
}

fn is_one_of(request: &Request, names: &[&str]) -> bool {
    Command::of(request.command).is_some_and(|command| names.contains(&command.name))
}

impl Cacheable for Redis {
    fn form(&self, client_form: u16, request: &Request, message: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(command) = Command::of(request.command) else {
            return false;
        };
        out.extend_from_slice(&client_form.to_le_bytes());
        if is_mget(request) {
            // A list of one is kept as what `GET` answers.
            out.extend_from_slice(&number("get").to_le_bytes());
            return request.more_keys.is_empty();
        }
        out.extend_from_slice(&request.command.to_le_bytes());
        let behind = message.get(request.key.end()..);
        let args = behind.and_then(|rest| rest.strip_prefix(b"\r\n"));
        let (true, Some(args)) = (command.is_kept && command.positions[0] == 1, args) else {
            return false;
        };
        out.extend_from_slice(args);
        true
    }

    fn kept<'b>(&self, request: &Request, _: &[u8], reply: &Reply, bytes: &'b [u8]) -> Fit<'b> {
        if !is_mget(request) {
            return Fit::Kept(*reply, bytes);
        }
        let Some(one) = bytes.strip_prefix(LIST_OF_ONE) else {
            return Fit::Shared;
        };
        // `MGET` has no error for a value of another type, and calls it missing.
        let is_string = one.first() == Some(&b'$') && !one.starts_with(b"$-1");
        let reply = Reply {
            head: reply.head.saturating_sub(LIST_OF_ONE.len() as u32),
            outcome: Outcome::Found,
            ..*reply
        };
        match is_string {
            true => Fit::Kept(reply, one),
            false => Fit::Shared,
        }
    }

    fn own(&self, request: &Request, _: &[u8], _: &[u8], out: &mut Vec<u8>) -> Option<usize> {
        if !is_mget(request) {
            return None;
        }
        out.extend_from_slice(LIST_OF_ONE);
        Some(0)
    }

    fn value_frame(&self, request: &Request, _: &[u8], len: usize, out: &mut Vec<u8>) -> Option<ValueFrame> {
        if !is_one_of(request, &["get", "mget"]) || !request.more_keys.is_empty() {
            return None;
        }
        if is_mget(request) {
            out.extend_from_slice(LIST_OF_ONE);
        }
        resp::append_number(b'$', len as i64, out);
        Some(ValueFrame {
            has_value: true,
            tail: b"\r\n",
            trailer: 0,
        })
    }

    fn removed(&self, request: &Request, _: &[u8], out: &mut Vec<u8>) -> Option<Reply> {
        let begin = out.len();
        if !is_one_of(request, &["del", "unlink"]) || !request.more_keys.is_empty() {
            return None;
        }
        out.extend_from_slice(b":1\r\n");
        Some(Reply::new(Outcome::Found, out.len() - begin))
    }

    fn is_pools(&self, login: &[u8]) -> bool {
        let identity = Identity::decode(login);
        identity.user == User::Pool && identity.database.is_none()
    }

    fn is_for_later(&self, bytes: &[u8]) -> bool {
        bytes == b"+QUEUED\r\n"
    }

    fn changes(&self, request: &Request, message: &[u8]) -> ChangeScope {
        if request.command == DECLARED {
            return self.changes_by_class(request);
        }
        if self.is_composite(request) {
            let mut all = ChangeScope::Nothing;
            self.each_request(request, message, &mut |inner, at| {
                let inner = self.changes(inner, message.get(at).unwrap_or_default());
                all = all.max(inner);
            });
            return all;
        }
        let is_whole = message.len() as u64 >= request.len();
        let Some(command) = Command::of(request.command) else {
            return ChangeScope::Nothing;
        };
        match command.changes {
            Changes::Nothing => ChangeScope::Nothing,
            // The rest of a large request may have keys, but where the only one is the first argument.
            Changes::Keys if !is_whole && !has_one_key(command) => ChangeScope::Everything,
            Changes::Keys => ChangeScope::Keys,
            Changes::Scripts if !is_whole => ChangeScope::Everything,
            Changes::Scripts => ChangeScope::Scripts,
            Changes::Everything => ChangeScope::Everything,
        }
    }
}

impl Redis {
    /// The change of a declared command: the configuration says whether it makes one.
    fn changes_by_class(&self, request: &Request) -> ChangeScope {
        use proxima_wire::message::Class;
        match (request.class, request.key.is_empty()) {
            (Class::Read, _) => ChangeScope::Nothing,
            // Nobody says what it changes.
            (_, true) => ChangeScope::Everything,
            (_, false) => ChangeScope::Keys,
        }
    }
}

/// Is its only key its first argument?
fn has_one_key(command: &Command) -> bool {
    command.positions[..2] == [1, 1] && !command.flags.contains(&"movablekeys")
}

#[cfg(test)]
mod tests {
    use proxima_wire::{
        message::{Outcome, Parsed, Reply, Request},
        resp,
    };

    use super::Redis;
    use crate::protocol::{Cacheable, ChangeScope, Fit, Requests};

    fn request(words: &str) -> (Request, Vec<u8>) {
        let words: Vec<&str> = words.split(' ').collect();
        let mut message = Vec::new();
        resp::append_number(b'*', words.len() as i64, &mut message);
        words
            .iter()
            .for_each(|word| super::super::append_bulk(word.as_bytes(), &mut message));
        let Parsed::Head(request) = Redis::PLAIN.head(&message) else {
            panic!("{words:?}");
        };
        (request, message)
    }

    fn form(words: &str, version: u16) -> Option<Vec<u8>> {
        let (request, message) = request(words);
        let mut out = Vec::new();
        Redis::PLAIN
            .form(version, &request, &message, &mut out)
            .then_some(out)
    }

    #[test]
    fn requests_with_other_replies_have_other_forms() {
        let all = [
            "get a",
            "strlen a",
            "getrange a 0 1",
            "getrange a 0 2",
            "hget a b",
            "hget a c",
            "lrange a 0 1",
        ];
        let mut seen = std::collections::HashSet::new();
        for words in all {
            for version in [0, 1] {
                assert!(seen.insert(form(words, version).unwrap()), "{words}");
            }
        }
        for words in ["get a", "hget a b"] {
            assert_eq!(
                form(words, 0),
                form(&words.to_uppercase().replace('A', "a").replace('B', "b"), 0)
            );
        }
        assert_eq!(form("mget a", 0), form("get a", 0));
        for words in [
            "set a b",
            "ttl a",
            "mget a b",
            "exists a",
            "srandmember a",
            "eval x 0",
            "incr a",
        ] {
            assert_eq!(form(words, 0), None, "{words}");
        }
    }

    #[test]
    fn a_list_of_one_is_kept_as_its_element() {
        let (request, message) = request("mget a");
        let kept = |bytes: &'static [u8]| {
            let reply = Reply::new(Outcome::Found, bytes.len());
            Redis::PLAIN.kept(&request, &message, &reply, bytes)
        };
        let Fit::Kept(reply, bytes) = kept(b"*1\r\n$1\r\nx\r\n") else {
            panic!("it is not kept");
        };
        assert_eq!((reply.len() as usize, bytes), (7, &b"$1\r\nx\r\n"[..]));
        assert_eq!(kept(b"*1\r\n$-1\r\n"), Fit::Shared);
        assert_eq!(kept(b"*1\r\n_\r\n"), Fit::Shared);
        let mut out = Vec::new();
        let own = Redis::PLAIN.own(&request, &message, bytes, &mut out);
        assert_eq!((own, &out[..]), (Some(0), &b"*1\r\n"[..]));
    }

    #[test]
    fn a_value_is_given_in_the_words_of_each_request() {
        for (words, expected) in [
            ("get a", Some("$3\r\nxyz\r\n")),
            ("mget a", Some("*1\r\n$3\r\nxyz\r\n")),
            ("mget a b", None),
            ("getrange a 0 1", None),
            ("strlen a", None),
            ("getdel a", None),
            ("set a b", None),
        ] {
            let (request, message) = request(words);
            let mut out = Vec::new();
            let around = Redis::PLAIN.value_frame(&request, &message, 3, &mut out);
            if let Some(around) = around {
                out.extend_from_slice(b"xyz");
                out.extend_from_slice(around.tail);
            }
            let given = around.map(|_| String::from_utf8(out).unwrap());
            assert_eq!(given.as_deref(), expected, "{words}");
        }
        for (words, is_removed) in [
            ("del a", true),
            ("unlink a", true),
            ("del a b", false),
            ("getdel a", false),
        ] {
            let (request, message) = request(words);
            let mut out = Vec::new();
            let removed = Redis::PLAIN.removed(&request, &message, &mut out);
            assert_eq!(removed.is_some(), is_removed, "{words}");
        }
    }

    #[test]
    fn what_a_request_changes_is_known() {
        for (words, changed) in [
            ("get a", ChangeScope::Nothing),
            ("pfcount a", ChangeScope::Keys),
            ("set a b", ChangeScope::Keys),
            ("blpop a 0", ChangeScope::Keys),
            ("flushall", ChangeScope::Everything),
            ("eval x 0", ChangeScope::Scripts),
            ("eval_ro x 0", ChangeScope::Nothing),
            ("publish a b", ChangeScope::Nothing),
        ] {
            let (request, message) = request(words);
            assert_eq!(Redis::PLAIN.changes(&request, &message), changed, "{words}");
        }
    }
}
