//! `lru_crawler metadump`: every key with its metadata, a few at a time.

use std::io::Write;

use proxima_wire::{
    memcache::{Command, error},
    message::{Outcome, Request},
};

use super::{call::words, reject, say};
use crate::embedded::{
    Context,
    store::{Item, Keyspace, Marks, Store, Walk},
};

/// A dump under way. Items that exist from its first step to its last are in it; items that come or go
/// meanwhile may be.
#[derive(Debug)]
pub struct Dump {
    walk: Walk,
}

impl Dump {
    /// The dump that `message` asks for. `None`: it asks for something else, or is malformed.
    pub fn asked(request: &Request, message: &[u8]) -> Option<Self> {
        let is_dump = request.command == Command::LruCrawler as u16;
        (is_dump && classes(request, message) == Ok(true)).then(|| Self {
            walk: Walk::new(Keyspace::Memcache),
        })
    }

    /// Appends the next few lines, and `END` after the last one. Returns whether the dump is complete.
    pub fn step(&mut self, store: &Store, context: &Context<'_>, out: &mut Vec<u8>) -> bool {
        let goes_on = store.walk(&mut self.walk, context.now, &mut |item| line(&item, context, out));
        if !goes_on {
            out.extend_from_slice(b"END\r\n");
        }
        !goes_on
    }
}

/// `lru_crawler metadump all | hash | CLASS,…`
pub(super) fn dump(
    store: &Store,
    context: &Context<'_>,
    request: &Request,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Outcome {
    match classes(request, message) {
        Ok(true) => {
            let walk = Walk::new(Keyspace::Memcache);
            let mut dump = Dump { walk };
            while !dump.step(store, context, out) {}
            Outcome::Ok
        }
        // The other classes are empty.
        Ok(false) => say(out, b"END\r\n", Outcome::Ok),
        Err(line) => reject(out, line),
    }
}

/// Whether the dump covers class 1, which holds all items.
fn classes(request: &Request, message: &[u8]) -> Result<bool, &'static [u8]> {
    /// The range of memcached's class numbers.
    const NUMBERS: std::ops::Range<u8> = 1..64;
    let mut words = words(request, message);
    let (Some(b"metadump"), Some(which), None) = (words.next(), words.next(), words.next()) else {
        return Err(error::ERROR);
    };
    if matches!(which, b"all" | b"hash") {
        return Ok(true);
    }
    let mut first = false;
    for number in which.split(|&byte| byte == b',') {
        let number = std::str::from_utf8(number)
            .ok()
            .and_then(|text| text.parse().ok());
        match number {
            Some(number) if NUMBERS.contains(&number) => first |= number == 1,
            _ => return Err(b"BADCLASS invalid class id\r\n"),
        }
    }
    Ok(first)
}

/// Writes a line as memcached does: the key as in a URL, times in seconds since 1970, and a line end without
/// CR.
fn line(item: &Item<'_>, context: &Context<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"key=");
    for &byte in item.key() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(byte),
            // Writing to a Vec cannot fail.
            _ => drop(write!(out, "%{byte:02X}")),
        }
    }
    let began = context.unix as i64 - (context.now / 1000) as i64;
    let expires = match item.expires() {
        0 => -1,
        at => began + (at / 1000) as i64,
    };
    let fetched = match item.marks().has(Marks::FETCHED) {
        true => "yes",
        false => "no",
    };
    let _ = writeln!(
        out,
        " exp={expires} la={} cas={} fetch={fetched} cls=1 size={}",
        began + i64::from(item.seen()),
        item.cas(),
        item.size(),
    );
}
