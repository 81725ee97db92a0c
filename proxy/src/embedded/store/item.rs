//! An item is one allocation: a fixed head, then the very bytes that a `get` answers in the protocol of its
//! keyspace.
//!
//! ```text
//! 0    8      12      16    20    24    25     26
//! cas  flags  length  seen  nkey  nfmt  marks  VALUE <key> <flags> <length>\r\n<value>\r\nEND\r\n
//!                                              <key>$<length>\r\n<value>\r\n
//! ```
//!
//! A hit is therefore one copy without formatting, and everything a request may ask of an item lies in the
//! cache lines that this copy touches anyway. The allocation is rounded up to its
//! [`size_class`](crate::size_class::size_class): its tail is not used, and a value that changes its length a
//! little finds room where it was.

use super::keyspace::Keyspace;
use crate::reactor::prefetch;

const CAS: usize = 0;
const FLAGS: usize = 8;
const LENGTH: usize = 12;
const SEEN: usize = 16;
const KEY_LENGTH: usize = 20;
const FORMAT_LENGTH: usize = 24;
const MARKS: usize = 25;
const HEAD: usize = 26;

/// Flags of an item, as one byte.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// The item was read since it was stored.
    pub const FETCHED: Self = Self(1);
    /// The item was invalidated, but may still be served while a client recaches it.
    pub const STALE: Self = Self(2);
    /// A client was told to recache the item.
    pub const TOKEN_SENT: Self = Self(4);
    /// The key came in base64 and goes out in base64.
    pub const BINARY_KEY: Self = Self(8);
    /// No flag.
    pub const NONE: Self = Self(0);

    /// The flags of both.
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The flags of `self` without those of `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Whether all flags of `other` are set.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// `self` if `condition` holds, else no flag.
    pub const fn when(self, condition: bool) -> Self {
        if condition { self } else { Self::NONE }
    }
}

/// The metadata of a new item.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meta {
    /// The client's flags.
    pub flags: u32,
    /// The expiry time, in milliseconds on the store's clock; 0: never.
    pub expires: u64,
    /// The marks of the new item.
    pub marks: Marks,
    /// The cas id. `None`: the store draws one that no other item of the store ever had.
    pub cas: Option<u64>,
}

/// An item to be read.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) expires: u64,
    pub(super) keyspace: Keyspace,
}

impl<'a> Item<'a> {
    /// The cas id. It is unique in its store unless the client chose it, and changes with every change of the
    /// value.
    pub fn cas(&self) -> u64 {
        number(self.bytes, CAS).map_or(0, u64::from_le_bytes)
    }

    /// The client's flags.
    pub fn flags(&self) -> u32 {
        number(self.bytes, FLAGS).map_or(0, u32::from_le_bytes)
    }

    /// The expiry time, in milliseconds on the store's clock; 0: never.
    pub const fn expires(&self) -> u64 {
        self.expires
    }

    /// The time of the last read or store, in seconds on the store's clock.
    pub fn seen(&self) -> u32 {
        number(self.bytes, SEEN).map_or(0, u32::from_le_bytes)
    }

    /// The marks.
    pub fn marks(&self) -> Marks {
        Marks(self.bytes[MARKS])
    }

    /// The key.
    pub fn key(&self) -> &'a [u8] {
        key(self.keyspace, self.bytes)
    }

    /// The value.
    #[inline]
    pub fn value(&self) -> &'a [u8] {
        let start = HEAD + self.line_length();
        &self.bytes[start..start + value_length(self.bytes)]
    }

    /// The whole reply to a `get` of one key: `VALUE <key> <flags> <length>\r\n<value>\r\nEND\r\n`, or
    /// `$<length>\r\n<value>\r\n`.
    #[inline]
    pub fn reply(&self) -> &'a [u8] {
        let begin = match self.keyspace {
            Keyspace::Memcache => HEAD,
            Keyspace::Redis => HEAD + key_length(self.bytes),
        };
        let end = HEAD + self.line_length() + value_length(self.bytes) + self.keyspace.end().len();
        &self.bytes[begin..end]
    }

    /// The size of this item in bytes, by memcached's measure.
    pub fn size(&self) -> usize {
        size(self.key().len(), self.flags(), self.value().len())
    }

    /// Bytes from the beginning of the line that has the key to the value.
    #[inline]
    pub fn line_length(&self) -> usize {
        self.keyspace.word().len() + key_length(self.bytes) + self.bytes[FORMAT_LENGTH] as usize
    }
}

/// memcached's measure of an item, so that both reject the same items: its head, its cas id, the key and a
/// NUL, the flags unless they are 0, the value and its line end.
pub(super) const fn size(key_length: usize, flags: u32, value_length: usize) -> usize {
    let flags_length = if flags == 0 { 0 } else { size_of::<u32>() };
    48 + 8 + key_length + 1 + flags_length + value_length + 2
}

#[inline]
fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.first_chunk().copied()
}

#[inline]
fn key_length(bytes: &[u8]) -> usize {
    number(bytes, KEY_LENGTH).map_or(0, u32::from_le_bytes) as usize
}

#[inline]
fn value_length(bytes: &[u8]) -> usize {
    number(bytes, LENGTH).map_or(0, u32::from_le_bytes) as usize
}

#[inline]
pub(super) fn key(keyspace: Keyspace, bytes: &[u8]) -> &[u8] {
    let start = HEAD + keyspace.word().len();
    &bytes[start..start + key_length(bytes)]
}

/// Starts loading an item. A processor that waits for its first line, to compare the key, does not look far
/// enough ahead to load the others by itself. Loading them together takes about the time of one.
#[inline]
pub(super) fn preload(bytes: &[u8]) {
    /// Beyond this length the processor has noticed a run of lines.
    const RUN: usize = 512;
    prefetch(&bytes[..bytes.len().min(RUN)]);
}

pub(super) fn set_cas(bytes: &mut [u8], cas: u64) {
    bytes[CAS..CAS + 8].copy_from_slice(&cas.to_le_bytes());
}

pub(super) fn set_marks(bytes: &mut [u8], marks: Marks) {
    bytes[MARKS] = marks.0;
}

/// Records a use at `second`, and adds `marks`. It writes only what changes, so that a hot item's line stays
/// clean.
#[inline]
pub(super) fn set_used(bytes: &mut [u8], second: u32, marks: Marks) {
    let marks = bytes[MARKS] | marks.0;
    if bytes[MARKS] != marks {
        bytes[MARKS] = marks;
    }
    if number(bytes, SEEN) != Some(second.to_le_bytes()) {
        set_seen(bytes, second);
    }
}

pub(super) fn set_seen(bytes: &mut [u8], second: u32) {
    bytes[SEEN..SEEN + 4].copy_from_slice(&second.to_le_bytes());
}

/// The part of an item that has to be formatted: its flags and its length as decimal text.
pub(super) struct Format {
    text: [u8; 24],
    length: u8,
    keyspace: Keyspace,
}

impl Format {
    pub(super) fn new(keyspace: Keyspace, flags: u32, value_length: usize) -> Self {
        let mut text = [0; 24];
        let (mut flags_text, mut length_text) = (itoa::Buffer::new(), itoa::Buffer::new());
        // Lengths are kept in 32 bits; the store's limit on items is below that.
        let digits = length_text.format(value_length as u32).as_bytes();
        let length = match keyspace {
            Keyspace::Memcache => {
                let flags = flags_text.format(flags).as_bytes();
                gather(&mut text, &[b" ", flags, b" ", digits, b"\r\n"])
            }
            Keyspace::Redis => gather(&mut text, &[b"$", digits, b"\r\n"]),
        };
        Self {
            text,
            length: length as u8,
            keyspace,
        }
    }

    fn as_bytes(&self) -> &[u8] {
        &self.text[..self.length as usize]
    }

    /// Bytes that the item needs, before rounding up.
    pub(super) fn item_length(&self, key: &[u8], value_length: usize) -> usize {
        let around = self.keyspace.word().len() + self.length as usize + self.keyspace.end().len();
        HEAD + key.len() + value_length + around
    }
}

/// Writes a whole item over `bytes`, which hold at least [`Format::item_length`]. The value is the
/// concatenation of `value`.
pub(super) fn write(
    bytes: &mut [u8],
    (cas, flags, marks, second): (u64, u32, Marks, u32),
    key: &[u8],
    format: &Format,
    value: [&[u8]; 3],
) {
    let length = value.iter().map(|part| part.len()).sum::<usize>() as u32;
    set_cas(bytes, cas);
    bytes[FLAGS..FLAGS + 4].copy_from_slice(&flags.to_le_bytes());
    bytes[LENGTH..LENGTH + 4].copy_from_slice(&length.to_le_bytes());
    set_seen(bytes, second);
    bytes[KEY_LENGTH..KEY_LENGTH + 4].copy_from_slice(&(key.len() as u32).to_le_bytes());
    bytes[FORMAT_LENGTH] = format.length;
    set_marks(bytes, marks);
    gather(
        &mut bytes[HEAD..],
        &[
            format.keyspace.word(),
            key,
            format.as_bytes(),
            value[0],
            value[1],
            value[2],
            format.keyspace.end(),
        ],
    );
}

/// Copies `parts` one after the other to the front of `into`. Returns the number of bytes.
fn gather(into: &mut [u8], parts: &[&[u8]]) -> usize {
    let mut at = 0;
    for part in parts {
        into[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    at
}
