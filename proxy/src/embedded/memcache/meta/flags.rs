//! The flags of a meta command. The codec has ensured that no flag stands twice, and that every number is
//! valid.

use proxima_wire::memcache::{error, number, time};

use crate::embedded::memcache::call::Call;

/// The longest opaque, its `O` included.
const OPAQUE: usize = 32;

/// The flags of a request. Flags that only ask for something in the reply are not here: they are answered in
/// the order in which they stand.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flags {
    /// `v`: the value is wanted.
    pub(super) value: bool,
    /// `u`: reading does not count as a use.
    pub(super) is_unnoticed: bool,
    /// `I`: a stale value may be stored, or the item becomes stale.
    pub(super) invalidate: bool,
    /// `N`: make the item, with this expiry time, if it is not there.
    pub(super) vivify: Option<i32>,
    /// `R`: a reader with less time left than this is to recache the item.
    pub(super) recache: Option<i32>,
    /// `T`: the new expiry time.
    pub(super) ttl: Option<i32>,
    /// `F`: the client's flags.
    pub(super) flags: u32,
    /// `C`: the cas id that the item must have.
    pub(super) compare: Option<u64>,
    /// `E`: the cas id that the item gets.
    pub(super) cas: Option<u64>,
    /// `M`: mode.
    pub(super) mode: Option<u8>,
    /// `J`: the number that a new item begins with.
    pub(super) initial: u64,
    /// `D`: the difference. `None`: 1.
    pub(super) delta: Option<u64>,
    /// `x`: the item stays, without its value.
    pub(super) empties: bool,
    /// `O`: the opaque is longer than it may be.
    is_opaque_long: bool,
}

impl Flags {
    /// Reads the flags of `request` that stand `skip` words after its key.
    ///
    /// # Errors
    /// The reply to an invalid flag.
    pub(super) fn read(call: &Call<'_>, skip: usize) -> Result<Self, &'static [u8]> {
        let mut flags = Self::default();
        for word in call.words().skip(skip) {
            let (flag, argument) = word.split_first().ok_or(error::INVALID_FLAG)?;
            match flag {
                b'v' => flags.value = true,
                b'u' => flags.is_unnoticed = true,
                b'I' => flags.invalidate = true,
                b'x' => flags.empties = true,
                b'N' => flags.vivify = time(argument),
                b'R' => flags.recache = time(argument),
                b'T' => flags.ttl = time(argument),
                b'C' => flags.compare = number(argument),
                b'E' => flags.cas = number(argument),
                b'D' => flags.delta = number(argument),
                b'J' => flags.initial = number(argument).unwrap_or(0),
                b'F' => flags.flags = number(argument).unwrap_or(0) as u32,
                b'M' => flags.mode = argument.first().copied(),
                b'O' => flags.is_opaque_long |= word.len() > OPAQUE,
                b'P' | b'L' | b'b' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' | b'q' => {}
                _ => return Err(error::INVALID_FLAG),
            }
        }
        Ok(flags)
    }

    /// Checks the length of the opaque, which memcached checks last.
    ///
    /// # Errors
    /// The reply to an opaque that is too long.
    pub(super) fn check_opaque(&self) -> Result<(), &'static [u8]> {
        if self.is_opaque_long {
            Err(OPAQUE_TOO_LONG)
        } else {
            Ok(())
        }
    }
}

const OPAQUE_TOO_LONG: &[u8] = b"CLIENT_ERROR opaque token too long\r\n";
