//! The options of `SET` and `GETEX`.

use proxima_wire::resp::Args;

use super::moment::Unit;

/// The options of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Options<'a> {
    pub(super) condition: Condition<'a>,
    /// The old value is the reply.
    pub(super) shows_old: bool,
    pub(super) expiry: Expiry<'a>,
}

/// The condition under which a value is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition<'a> {
    Always,
    /// If the key has no value.
    Absent,
    /// If the key has a value.
    Present,
    /// If the key has this value.
    Equal(&'a [u8]),
}

/// The expiry time that a key gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expiry<'a> {
    /// The default of the command.
    Unsaid,
    /// The one that it has.
    Keep,
    /// None.
    Never,
    /// This one.
    At(Unit, &'a [u8]),
}

/// The command to which options belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OptionsOf {
    Set,
    GetEx,
}

/// Reads the options of a command. `None` if a word is no option, or two options exclude each other.
pub(super) fn read<'a>(of: OptionsOf, words: &mut Args<'a>) -> Option<Options<'a>> {
    let mut options = Options {
        condition: Condition::Always,
        shows_old: false,
        expiry: Expiry::Unsaid,
    };
    while let Some(word) = words.text() {
        match of {
            OptionsOf::Set if options.take_condition(word, words) => {}
            _ => options.expiry = expiry(of, options.expiry, word, words)?,
        }
    }
    Some(options)
}

impl<'a> Options<'a> {
    /// Takes a word that says when to store, or to show the old value. Returns false if it is no such word,
    /// or contradicts an earlier one.
    fn take_condition(&mut self, word: &[u8], words: &mut Args<'a>) -> bool {
        let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
        let condition = match self.condition {
            Condition::Always | Condition::Absent if is("nx") => Condition::Absent,
            Condition::Always | Condition::Present if is("xx") => Condition::Present,
            Condition::Always if is("ifeq") && words.left() > 0 => {
                Condition::Equal(words.text().unwrap_or_default())
            }
            _ if is("get") => {
                self.shows_old = true;
                return true;
            }
            _ => return false,
        };
        self.condition = condition;
        true
    }
}

/// Takes a word about the expiry time. The same kind may be said again, and the last one counts.
fn expiry<'a>(of: OptionsOf, before: Expiry<'a>, word: &[u8], words: &mut Args<'a>) -> Option<Expiry<'a>> {
    let is = |name: &str| word.eq_ignore_ascii_case(name.as_bytes());
    let units = [
        ("ex", Unit::Seconds),
        ("px", Unit::Millis),
        ("exat", Unit::UnixSeconds),
        ("pxat", Unit::UnixMillis),
    ];
    let said = match units.into_iter().find(|(name, _)| is(name)) {
        Some((_, unit)) => Expiry::At(unit, words.text()?),
        None if is("keepttl") && of == OptionsOf::Set => Expiry::Keep,
        None if is("persist") && of == OptionsOf::GetEx => Expiry::Never,
        None => return None,
    };
    let agrees = match (before, said) {
        (Expiry::Unsaid, _) => true,
        (Expiry::At(one, _), Expiry::At(other, _)) => one == other,
        (before, said) => before == said,
    };
    agrees.then_some(said)
}
