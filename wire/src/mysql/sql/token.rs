//! The words, names, quotes and marks of a text.

use memchr::{memchr, memchr2};

use super::{
    Charset, Mode,
    keyword::Keyword,
    number::{is_name, number},
};

/// Are the comments that some servers execute part of the text?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comments {
    Executed,
    Skipped,
}

/// A part of a text. Positions are bytes from its beginning, of which there are at most
/// [`LONGEST`](super::LONGEST).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Token {
    /// A word, which begins and ends here.
    Word(Keyword, u32, u32),
    /// A name in quotes: the bytes between them.
    Name(u32, u32),
    /// A text in quotes.
    Text,
    Number,
    /// `@name`
    UserVariable,
    /// `@@`, and whether GLOBAL or PERSIST stands behind it.
    SystemVariable(bool),
    /// `:=`
    Assign,
    /// Any other character.
    Mark(u8),
    /// The end of the text.
    End,
}

impl Token {
    pub(super) const fn ends_statement(self) -> bool {
        matches!(self, Self::Mark(b';') | Self::End)
    }

    pub(super) const fn ends_text(self) -> bool {
        matches!(self, Self::End)
    }

    pub(super) const fn keyword(self) -> Keyword {
        match self {
            Self::Word(keyword, ..) => keyword,
            _ => Keyword::Other,
        }
    }

    pub(super) fn is(self, keyword: Keyword) -> bool {
        self.keyword() == keyword
    }
}

/// Reads a text from its beginning.
#[derive(Clone, Debug)]
pub(super) struct Tokens<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) at: usize,
    mode: Mode,
    pub(super) how: Comments,
    /// The end of the executed comment around `at`, before its closing mark.
    pub(super) inner: Option<usize>,
    /// Comments that some servers execute.
    pub(super) comments: u32,
    /// A statement begins within such a comment.
    pub(super) comment_begins_statement: bool,
    /// No token of the statement was returned.
    is_fresh: bool,
}

impl<'a> Tokens<'a> {
    pub(super) const fn of(bytes: &'a [u8], mode: Mode, how: Comments) -> Self {
        Self {
            bytes,
            at: 0,
            mode,
            how,
            inner: None,
            comments: 0,
            comment_begins_statement: false,
            is_fresh: true,
        }
    }

    /// The bytes of a word or name.
    #[inline]
    pub(super) fn slice(&self, start: u32, end: u32) -> &'a [u8] {
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    /// The next part. `None`: it cannot be read.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Token> {
        self.blanks()?;
        let Some(&byte) = self.bytes.get(self.at) else {
            return Some(Token::End);
        };
        if self.is_fresh && byte != b'(' {
            self.is_fresh = false;
            self.comment_begins_statement |= self.inner.is_some();
        }
        let token = self.token(byte)?;
        // Nothing may reach out of an executed comment.
        if self.inner.is_some_and(|end| self.at > end) {
            return None;
        }
        self.is_fresh |= token == Token::Mark(b';');
        Some(token)
    }

    fn token(&mut self, byte: u8) -> Option<Token> {
        match byte {
            b'0'..=b'9' => self.number(),
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            _ if is_name(byte) => {
                let (start, end) = self.name()?;
                Some(Token::Word(Keyword::of(self.slice(start, end)), start, end))
            }
            b'\'' => self.text(byte),
            b'"' if !self.mode.ansi_quotes => self.text(byte),
            b'"' | b'`' => self.quoted_name(byte),
            b'@' => self.variable(),
            b':' if self.byte(1) == b'=' => {
                self.at += 2;
                Some(Token::Assign)
            }
            // Neither is part of the language, but for forms that are not served.
            b'\\' | b'[' | b']' => None,
            _ if byte.is_ascii_control() => None,
            _ => {
                self.at += 1;
                Some(Token::Mark(byte))
            }
        }
    }

    /// The byte so far ahead; 0: none.
    pub(super) fn byte(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    /// Goes to the end of the name that begins here, and returns where it begins and ends. `None`: it may be
    /// more than one, with blanks of the character set between them.
    #[inline]
    fn name(&mut self) -> Option<(u32, u32)> {
        let start = self.at as u32;
        while self.bytes.get(self.at).is_some_and(|&byte| is_name(byte)) {
            self.at += 1;
        }
        let is_one = self.mode.charset == Charset::Utf8 || self.slice(start, self.at as u32).is_ascii();
        is_one.then_some((start, self.at as u32))
    }

    fn number(&mut self) -> Option<Token> {
        let start = self.at;
        let (end, is_number) = number(self.bytes, start);
        self.at = end;
        if is_number {
            return Some(Token::Number);
        }
        let (_, end) = self.name()?;
        Some(Token::Word(Keyword::Other, start as u32, end))
    }

    /// A text in these quotes, which may stand in it twice or behind a backslash.
    fn text(&mut self, quote: u8) -> Option<Token> {
        self.at += 1;
        loop {
            let rest = &self.bytes[self.at..];
            let escape = if self.mode.no_backslash_escapes {
                quote
            } else {
                b'\\'
            };
            self.at += memchr2(quote, escape, rest)?;
            match (self.byte(0) == quote, self.byte(1)) {
                (true, next) if next == quote => self.at += 2,
                (true, _) => {
                    self.at += 1;
                    return Some(Token::Text);
                }
                (false, _) if self.at + 1 < self.bytes.len() => self.at += 2,
                (false, _) => return None,
            }
        }
    }

    /// A name in these quotes, which may stand in it twice.
    fn quoted_name(&mut self, quote: u8) -> Option<Token> {
        let start = self.at + 1;
        self.at = start;
        loop {
            self.at += memchr(quote, &self.bytes[self.at..])?;
            if self.byte(1) != quote {
                self.at += 1;
                return Some(Token::Name(start as u32, self.at as u32 - 1));
            }
            self.at += 2;
        }
    }

    /// A user variable, whose name may stand in quotes, or the marks of a system variable.
    fn variable(&mut self) -> Option<Token> {
        self.at += 1;
        match self.byte(0) {
            b'@' => {
                self.at += 1;
                let rest = &self.bytes[self.at..];
                let is_of_all = |scope: &[u8]| {
                    rest.get(..scope.len())
                        .is_some_and(|word| word.eq_ignore_ascii_case(scope))
                };
                let scopes: [&[u8]; 4] = [b"global", b"persist", b"`global", b"`persist"];
                return Some(Token::SystemVariable(scopes.into_iter().any(is_of_all)));
            }
            b'"' if self.mode.ansi_quotes => self.quoted_name(b'"').map(|_| ())?,
            quote @ (b'\'' | b'"') => self.text(quote).map(|_| ())?,
            b'`' => self.quoted_name(b'`').map(|_| ())?,
            _ => {
                self.name()?;
                while self.byte(0) == b'.' {
                    self.at += 1;
                    self.name()?;
                }
            }
        }
        Some(Token::UserVariable)
    }
}
