//! The form of a run's requests and replies: one key, many keys, or a transaction.

use crate::{
    mysql,
    protocol::{Protocol, Statements},
    redis::{reply, request},
    verdict::Verdict,
    workload::{Keys, Operation},
};

/// The line before the replies of a transaction, once for each of its commands.
const QUEUED: &[u8] = b"+QUEUED\r\n";

/// How thoroughly replies are checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Every byte.
    Whole,
    /// The framing, the lengths, and the key inside each value: cheap, and enough to see a misrouted reply.
    Framing,
}

/// The form of requests, and what their replies look like.
pub(crate) struct Form {
    protocol: Protocol,
    /// Keys of a request.
    keys: usize,
    /// The request is a transaction with a command for each key.
    transaction: bool,
    value_size: usize,
    /// Bytes of the reply to a get that finds its value.
    hit_length: usize,
    /// The bytes before the value of one of the keys.
    announcement: Vec<u8>,
}

impl Form {
    /// Requests with this number of keys each. True: a request is a transaction with a command for each.
    pub(crate) fn new(
        protocol: Protocol,
        (count, transaction): (usize, bool),
        value_size: usize,
        keys: &Keys,
    ) -> Self {
        let mut announcement = Vec::new();
        protocol.append_announcement(keys.get(0), value_size, &mut announcement);
        Self {
            protocol,
            keys: count,
            transaction,
            value_size,
            hit_length: announcement.len() + value_size + protocol.hit_end().len(),
            announcement,
        }
    }

    /// Operations that make one request. The keys of a transaction are the same, so that it is at one server.
    pub(crate) fn operations(&self) -> usize {
        if self.transaction { 1 } else { self.keys }
    }

    /// Steps of a request, each of which has a reply. A transaction of MySQL has one for each statement.
    pub(crate) fn steps(&self) -> usize {
        if self.has_steps() { self.keys + 2 } else { 1 }
    }

    fn has_steps(&self) -> bool {
        self.transaction && self.protocol.is_mysql()
    }

    /// Appends this step of the request of these operations, the first of which says whether it reads or
    /// writes, on a connection that has prepared these statements.
    pub(crate) fn append(
        &self,
        operations: &[Operation],
        step: usize,
        keys: &Keys,
        statements: Statements,
        out: &mut Vec<u8>,
    ) {
        if self.has_steps() && step == 0 {
            return mysql::transaction::append_begin(out);
        }
        if self.has_steps() && step > self.keys {
            return mysql::transaction::append_commit(out);
        }
        let [first, ..] = operations else { return };
        let one = |out: &mut Vec<u8>| {
            let key = keys.get(first.key);
            if first.set {
                self.protocol.append_set(key, self.value_size, statements, out);
            } else {
                self.protocol.append_get(key, statements, out);
            }
        };
        let all = operations.iter().map(|operation| keys.get(operation.key));
        if self.has_steps() {
            one(out);
        } else if self.transaction {
            out.extend_from_slice(b"*1\r\n$5\r\nMULTI\r\n");
            (0..self.keys).for_each(|_| one(out));
            out.extend_from_slice(b"*1\r\n$4\r\nEXEC\r\n");
        } else if self.keys == 1 {
            one(out);
        } else if first.set {
            request::append_mset(all, self.value_size, out);
        } else {
            request::append_mget(all, out);
        }
    }

    /// Judges the reply to a request that is no transaction, at the start of `bytes`. Returns its length and
    /// its contents. `None`: more bytes are needed.
    pub(crate) fn judge<'a>(
        &self,
        bytes: &[u8],
        mut asked: impl ExactSizeIterator<Item = &'a [u8]>,
        set: bool,
    ) -> Option<(usize, Verdict)> {
        if self.keys > 1 {
            return reply::judge_many(bytes, asked, set, self.value_size);
        }
        let key = asked.next().unwrap_or_default();
        self.protocol.judge(bytes, key, set, self.value_size)
    }

    /// Bytes that the reply has before its values.
    fn head(&self, set: bool) -> Vec<u8> {
        let mut head = Vec::new();
        if self.transaction {
            head.extend_from_slice(b"+OK\r\n");
            head.extend(QUEUED.repeat(self.keys));
        }
        if self.transaction || self.keys > 1 && !set {
            request::append_length(b'*', self.keys, &mut head);
        }
        head
    }

    /// Replies to one key each that stand behind the head.
    fn parts(&self, set: bool) -> usize {
        if set && !self.transaction { 1 } else { self.keys }
    }

    fn part_length(&self, set: bool) -> usize {
        if set {
            self.protocol.stored().len()
        } else {
            self.hit_length
        }
    }

    /// Bytes of a good reply to this step.
    pub(crate) fn reply_length(&self, set: bool, step: usize) -> usize {
        if self.has_steps() {
            let is_end = step == 0 || step > self.keys;
            return self.part_length(set || is_end);
        }
        self.head(set).len() + self.parts(set) * self.part_length(set)
    }

    /// Whether `reply`, of a good one's length, is one to this step.
    pub(crate) fn is_good(
        &self,
        reply: &[u8],
        (operations, step): (&[Operation], usize),
        keys: &Keys,
        check: Check,
    ) -> bool {
        match step {
            _ if !self.has_steps() => self.is_whole(reply, operations, keys, check),
            0 => reply == mysql::transaction::BEGUN,
            _ if step > self.keys => reply == mysql::transaction::COMMITTED,
            _ => mysql::transaction::as_outside(reply).is_some_and(|reply| {
                let one = Self {
                    keys: 1,
                    transaction: false,
                    announcement: self.announcement.clone(),
                    ..*self
                };
                one.is_whole(&reply, operations, keys, check)
            }),
        }
    }

    /// Whether `reply`, of a good one's length, is one to a request of a single step.
    fn is_whole(&self, reply: &[u8], operations: &[Operation], keys: &Keys, check: Check) -> bool {
        let Some(set) = operations.first().map(|operation| operation.set) else {
            return reply.is_empty();
        };
        let Some(parts) = reply.strip_prefix(&*self.head(set)) else {
            return false;
        };
        let asked = operations.iter().cycle();
        parts
            .chunks(self.part_length(set))
            .zip(asked)
            .all(|(part, operation)| {
                let key = keys.get(operation.key);
                match check {
                    _ if set => part == self.protocol.stored(),
                    Check::Whole => {
                        self.protocol.judge(part, key, false, self.value_size)
                            == Some((part.len(), Verdict::Hit))
                    }
                    Check::Framing => self.is_framed(part, key),
                }
            })
    }

    /// Whether `reply`, of a hit's length, has the end of a hit on `key`, and the key in its value.
    fn is_framed(&self, reply: &[u8], key: &[u8]) -> bool {
        let end = self.protocol.hit_end();
        let (announcement, data) = reply.split_at(reply.len() - end.len() - self.value_size);
        let is_announced = match self.protocol {
            Protocol::Memcached => {
                let key_first = announcement.strip_prefix(b"VALUE ");
                key_first.is_some_and(|rest| rest.starts_with(key)) && announcement.ends_with(b"\r\n")
            }
            Protocol::Redis => announcement.starts_with(b"$") && announcement.ends_with(b"\r\n"),
            Protocol::Mysql | Protocol::MysqlPrepared => announcement == self.announcement,
        };
        is_announced && data.starts_with(&key[..key.len().min(self.value_size)]) && data.ends_with(end)
    }
}
