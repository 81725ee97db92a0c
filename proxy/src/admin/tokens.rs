//! The tokens of those who may change something by the admin port.

use std::{io, path::PathBuf};

use aws_lc_rs::constant_time::verify_slices_are_equal;

use crate::config::file;

/// Bytes of the file at most.
const LIMIT: u64 = 64 * 1024;
/// Characters of a token at least. One of 16 random hexadecimal digits is not found by trying.
const LEAST: usize = 16;

/// A file of tokens, one a line. It is read whenever somebody shows one, so that a change of it counts at once.
#[derive(Clone, Debug)]
pub struct Tokens(PathBuf);

/// The file of tokens cannot be used. The messages tell none of them.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages name the fields")]
pub enum TokensError {
    #[error("`token_file`: {path} cannot be read: {error}", path = .path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("`token_file`: {path} holds no token: write one a line, such as `openssl rand -hex 32` makes", path = .0.display())]
    Empty(PathBuf),
    #[error(
        "`token_file`: line {line} of {path} is no token: write {LEAST} visible characters or more, without a space",
        path = .path.display()
    )]
    Unfit { path: PathBuf, line: usize },
}

impl Tokens {
    /// Those in this file, which is not read yet.
    pub fn new(file: PathBuf) -> Self {
        Self(file)
    }

    /// Reads the file.
    ///
    /// # Errors
    /// It cannot be read, or holds something else than tokens.
    pub fn read(&self) -> Result<(), TokensError> {
        self.all().map(drop)
    }

    /// Is this one of the tokens? Its time tells nothing of them but their lengths.
    ///
    /// # Errors
    /// The file cannot be used: then nobody has one.
    pub(super) fn have(&self, shown: &[u8]) -> Result<bool, TokensError> {
        let is = |token: &Vec<u8>| verify_slices_are_equal(token, shown).is_ok();
        // Not `any`, which ends with the one that fits.
        Ok(self.all()?.iter().filter(|token| is(token)).count() > 0)
    }

    fn all(&self) -> Result<Vec<Vec<u8>>, TokensError> {
        let path = || self.0.clone();
        let bytes = file::read_bytes(&self.0, LIMIT)
            .map_err(|error| TokensError::Unreadable { path: path(), error })?;
        let mut tokens = Vec::new();
        for (number, line) in bytes.split(|byte| *byte == b'\n').enumerate() {
            let token = line.trim_ascii();
            if token.is_empty() {
                continue;
            }
            if token.len() < LEAST || !token.iter().all(u8::is_ascii_graphic) {
                let line = number + 1;
                return Err(TokensError::Unfit { path: path(), line });
            }
            tokens.push(token.to_vec());
        }
        match tokens.is_empty() {
            true => Err(TokensError::Empty(path())),
            false => Ok(tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn each_line_is_a_token_and_a_changed_file_counts_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let tokens = Tokens::new(file.clone());
        assert!(matches!(tokens.read(), Err(TokensError::Unreadable { .. })));
        fs::write(&file, "0123456789abcdef\n\n  fedcba9876543210\r\n").unwrap();
        assert!(tokens.read().is_ok());
        for (shown, is_one) in [
            ("0123456789abcdef", true),
            ("fedcba9876543210", true),
            ("0123456789abcde", false),
            ("0123456789abcdef0", false),
            ("", false),
            ("0123456789abcdef\n\n  fedcba9876543210", false),
        ] {
            assert_eq!(tokens.have(shown.as_bytes()).unwrap(), is_one, "{shown:?}");
        }
        fs::write(&file, "fedcba9876543210").unwrap();
        assert!(!tokens.have(b"0123456789abcdef").unwrap());
    }

    #[test]
    fn a_file_without_a_token_or_with_something_else_is_refused_and_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("token");
        let tokens = Tokens::new(file.clone());
        for (text, why) in [
            ("", "holds no token"),
            (" \n\n", "holds no token"),
            ("0123456789abcdef\nshort", "line 2 of"),
            ("two words are no token", "line 1 of"),
            ("0123456789abcdef\u{e9}", "line 1 of"),
        ] {
            fs::write(&file, text).unwrap();
            let told = tokens.read().unwrap_err().to_string();
            assert!(told.contains(why), "{text:?}: {told}");
            assert!(!told.contains("abcdef") && !told.contains("words"), "{told}");
        }
        fs::write(&file, vec![b'a'; LIMIT as usize + 1]).unwrap();
        assert!(tokens.read().is_err());
    }
}
