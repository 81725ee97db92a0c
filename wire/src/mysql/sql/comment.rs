//! Comments. Some servers read some of them as part of the text.

use memchr::{memchr, memchr2, memmem};

use super::token::{Comments, Tokens};

impl Tokens<'_> {
    /// Goes over blanks and comments. `None`: a comment has no end, or is hard to read.
    #[inline]
    pub(super) fn blanks(&mut self) -> Option<()> {
        loop {
            match (self.byte(0), self.byte(1)) {
                (b' ' | b'\t'..=b'\r', _) => self.at += 1,
                (b'#', _) => self.line_comment()?,
                (b'-', b'-') if self.is_line_comment() => self.line_comment()?,
                (b'/', b'*') => self.comment()?,
                (b'*', b'/') if self.inner == Some(self.at) => {
                    self.inner = None;
                    self.at += 2;
                }
                _ => return Some(()),
            }
        }
    }

    /// Behind two hyphens of a comment comes a blank, a control character, or the end of the text.
    fn is_line_comment(&self) -> bool {
        self.at + 2 >= self.bytes.len() || matches!(self.byte(2), 0..=b' ' | 0x7f)
    }

    fn line_comment(&mut self) -> Option<()> {
        if self.inner.is_some() {
            return None;
        }
        let rest = &self.bytes[self.at..];
        self.at += memchr(b'\n', rest).unwrap_or(rest.len());
        Some(())
    }

    fn comment(&mut self) -> Option<()> {
        if self.inner.is_some() {
            return None;
        }
        let begin = self.at + 2;
        let rest = &self.bytes[begin..];
        let end = begin + memmem::find(rest, b"*/")?;
        let executed = match (self.byte(2), self.byte(3)) {
            (b'!', _) => Some(begin + 1),
            (b'M' | b'm', b'!') => Some(begin + 2),
            // Optimizer hints have quotes of their own.
            (b'+', _) if memchr2(b'"', b'`', &self.bytes[begin..end]).is_some() => return None,
            _ => None,
        };
        match executed {
            Some(content) => self.executable(content, end),
            None => {
                self.at = end + 2;
                Some(())
            }
        }
    }

    /// A comment that some servers execute, from the version number that may stand here. Where it ends must
    /// not depend on whether it is executed.
    fn executable(&mut self, begin: usize, end: usize) -> Option<()> {
        let content = self.bytes.get(begin..end)?;
        let version = content.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if !matches!(version, 0 | 5 | 6) || !is_plain(content) {
            return None;
        }
        self.comments += 1;
        match self.how {
            Comments::Skipped => self.at = end + 2,
            Comments::Executed => {
                self.at = begin + version;
                self.inner = Some(end);
            }
        }
        Some(())
    }
}

/// Has the content of a comment no comment within, and no second statement?
fn is_plain(content: &[u8]) -> bool {
    memchr2(b';', b'#', content).is_none()
        && memmem::find(content, b"/*").is_none()
        && memmem::find(content, b"--").is_none()
}
