//! The flags of a meta command. The codec has made sure that none stands twice and that `T` and `N` carry numbers.

use proxima_wire::memcache::{error, number, time};

use crate::near::embedded::call::Call;

/// The longest opaque, its `O` included.
const OPAQUE: usize = 32;

/// What the flags of a request say. Those that only ask for something in the reply are not here: they are answered in
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
    /// `R`: who reads with less time left than this is to recache the item.
    pub(super) recache: Option<i32>,
    /// `T`: another expiry time.
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
    /// `D`: by how much a number changes; none = 1.
    pub(super) delta: Option<u64>,
}

impl Flags {
    /// Reads the flags of `request`, `skip` words after its key.
    ///
    /// # Errors
    /// The line to answer.
    pub(super) fn read(call: &Call<'_>, skip: usize) -> Result<Self, &'static [u8]> {
        let mut flags = Self::default();
        // memcached reads on after a bad argument, but not after a flag it does not know: the last fault is answered.
        let mut fault = None;
        for word in call.words().skip(skip) {
            let (flag, argument) = word.split_first().ok_or(INVALID)?;
            match flag {
                b'v' => flags.value = true,
                b'u' => flags.is_unnoticed = true,
                b'I' => flags.invalidate = true,
                b'N' => fault = argument_of(&mut flags.vivify, time(argument), error::BAD_TOKEN).or(fault),
                b'R' => fault = argument_of(&mut flags.recache, time(argument), error::BAD_TOKEN).or(fault),
                b'T' => fault = argument_of(&mut flags.ttl, time(argument), error::BAD_TOKEN).or(fault),
                b'C' => fault = argument_of(&mut flags.compare, number(argument), error::BAD_TOKEN).or(fault),
                b'E' => fault = argument_of(&mut flags.cas, number(argument), error::BAD_TOKEN).or(fault),
                b'D' => fault = argument_of(&mut flags.delta, number(argument), BAD_DELTA).or(fault),
                b'J' => match number(argument) {
                    Some(initial) => flags.initial = initial,
                    None => fault = Some(BAD_INITIAL),
                },
                b'F' => match number(argument) {
                    // 32 bits are kept, as of an expiry time.
                    Some(client_flags) => flags.flags = client_flags as u32,
                    // memcached has no text of its own for this one.
                    None => fault = fault.or(Some(error::BAD_FORMAT)),
                },
                b'M' => match argument {
                    [mode] => flags.mode = Some(*mode),
                    _ => fault = Some(BAD_MODE_LENGTH),
                },
                b'O' if word.len() > OPAQUE => fault = Some(OPAQUE_TOO_LONG),
                b'O' | b'P' | b'L' | b'b' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' | b'q' => {}
                _ => return Err(INVALID),
            }
        }
        fault.map_or(Ok(flags), Err)
    }
}

const INVALID: &[u8] = b"CLIENT_ERROR invalid flag\r\n";
const BAD_MODE_LENGTH: &[u8] = b"CLIENT_ERROR incorrect length for M token\r\n";
const BAD_INITIAL: &[u8] = b"CLIENT_ERROR invalid numeric initial value\r\n";
const BAD_DELTA: &[u8] = b"CLIENT_ERROR invalid numeric delta value\r\n";
/// The one fault that every command reports by this name.
pub(super) const OPAQUE_TOO_LONG: &[u8] = b"CLIENT_ERROR opaque token too long\r\n";

/// Sets `place` to what the argument says, or returns the fault.
fn argument_of<T>(place: &mut Option<T>, argument: Option<T>, fault: &'static [u8]) -> Option<&'static [u8]> {
    *place = argument;
    place.is_none().then_some(fault)
}
