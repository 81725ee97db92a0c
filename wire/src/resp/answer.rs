//! The answers of `commands/empty.tsv`, as data beside each command.

/// One of the answers to a command.
#[derive(Debug)]
pub(super) struct Case {
    /// The conditions of the answer: all of them hold, and the cases before it do not match.
    pub(super) when: &'static [ArgumentTest],
    pub(super) answer: Answer,
}

/// A condition on the arguments of a request.
#[derive(Debug)]
pub(super) enum ArgumentTest {
    /// The word stands among the arguments from this one on.
    Word(&'static str, usize),
    /// This argument is this word.
    Is(usize, &'static str),
    /// There are so many words with the name.
    Words(usize),
}

/// An answer. Numbers are those of arguments, of which the name is the first.
#[derive(Debug)]
pub(super) enum Answer {
    /// These bytes, in RESP2 and in RESP3.
    Bytes(&'static str, &'static str),
    /// An error in which `{N}` and `{key}` stand for arguments.
    Error(&'static str),
    /// An array with these bytes for each argument from one on.
    Each(usize, &'static str, &'static str),
    /// An array with each argument from one on, and 0 behind it.
    Zeros(usize),
    /// The number of arguments from one on.
    Count(usize),
    /// The number of different arguments: the first and the step.
    Distinct(usize, usize),
    /// The number of different members, which stand behind numbers: words of a member and its numbers.
    Members(usize),
    Integer(usize),
    Minus(usize),
    Float(usize),
    Double(usize),
    /// The first number, as a double.
    Score,
    Length(usize),
    /// The sum of the offset in one argument and the length of the next; 0 if that is empty.
    End(usize),
    Echo(usize),
    /// An answer for each of the operations of `BITFIELD`.
    Fields,
    /// Only a server can say.
    Server,
}
