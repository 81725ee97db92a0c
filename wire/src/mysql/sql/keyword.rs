//! The words that decide the class of a statement.

macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// A word without quotes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword {
            $($name,)*
            /// Any other.
            Other,
        }

        /// All keywords, in capitals.
        const ALL: &[&[u8]] = &[$($text,)*];

        impl Keyword {
            /// The keyword that is written so in capitals.
            fn of_capitals(word: &[u8]) -> Self {
                match word {
                    $($text => Self::$name,)*
                    _ => Self::Other,
                }
            }
        }
    };
}

keywords! {
    Alter b"ALTER", Analyze b"ANALYZE", Backup b"BACKUP", Begin b"BEGIN", Binlog b"BINLOG", Cache b"CACHE",
    Call b"CALL", Change b"CHANGE", Check b"CHECK", Checksum b"CHECKSUM", Clone b"CLONE", Commit b"COMMIT",
    Create b"CREATE", Currval b"CURRVAL", Data b"DATA", Deallocate b"DEALLOCATE", Default b"DEFAULT",
    Delete b"DELETE", Desc b"DESC", Describe b"DESCRIBE", Do b"DO", Drop b"DROP", Dumpfile b"DUMPFILE",
    Execute b"EXECUTE", Explain b"EXPLAIN", Extended b"EXTENDED", Flush b"FLUSH", For b"FOR",
    Format b"FORMAT", Full b"FULL", Get b"GET", Global b"GLOBAL", Grant b"GRANT", Handler b"HANDLER",
    Help b"HELP", Import b"IMPORT", In b"IN", Index b"INDEX", Insert b"INSERT", Install b"INSTALL",
    Instance b"INSTANCE", Into b"INTO", Kill b"KILL", Load b"LOAD", Local b"LOCAL", Lock b"LOCK",
    Next b"NEXT",
    Nextval b"NEXTVAL", Optimize b"OPTIMIZE", Outfile b"OUTFILE", Partitions b"PARTITIONS",
    Password b"PASSWORD", Persist b"PERSIST", PersistOnly b"PERSIST_ONLY", Prepare b"PREPARE",
    Previous b"PREVIOUS", Purge b"PURGE", Release b"RELEASE", Rename b"RENAME", Repair b"REPAIR",
    Replace b"REPLACE", Reset b"RESET", Resource b"RESOURCE", Restart b"RESTART", Revoke b"REVOKE",
    Rollback b"ROLLBACK", Savepoint b"SAVEPOINT", Select b"SELECT", Session b"SESSION",
    SessionVariables b"SESSION_VARIABLES", Set b"SET",
    Share b"SHARE", Show b"SHOW", Shutdown b"SHUTDOWN", SqlCalcFoundRows b"SQL_CALC_FOUND_ROWS",
    Start b"START", Statement b"STATEMENT", Stop b"STOP", Table b"TABLE", Tables b"TABLES",
    Temporary b"TEMPORARY", Transaction b"TRANSACTION", Truncate b"TRUNCATE", Uninstall b"UNINSTALL",
    Unlock b"UNLOCK", Update b"UPDATE", Use b"USE", Value b"VALUE", Values b"VALUES", With b"WITH",
    Work b"WORK", Xa b"XA", Xml b"XML",
}

/// Bytes of the longest keyword.
const LONGEST: usize = 19;

/// The lengths of the keywords that begin with each letter, as bits. Most words are of none of these.
const LENGTHS: [u32; 26] = {
    let mut lengths = [0; 26];
    let mut at = 0;
    while at < ALL.len() {
        lengths[(ALL[at][0] - b'A') as usize] |= 1 << ALL[at].len();
        at += 1;
    }
    lengths
};

impl Keyword {
    /// The keyword that this word is, in any case.
    #[inline]
    pub(super) fn of(word: &[u8]) -> Self {
        let letter = word.first().map_or(0, u8::to_ascii_uppercase).wrapping_sub(b'A');
        let lengths = LENGTHS.get(usize::from(letter)).copied().unwrap_or(0);
        if word.len() > LONGEST || lengths & 1 << word.len() == 0 {
            return Self::Other;
        }
        let mut capitals = [0; LONGEST];
        let capitals = &mut capitals[..word.len()];
        for (capital, byte) in capitals.iter_mut().zip(word) {
            *capital = byte.to_ascii_uppercase();
        }
        Self::of_capitals(capitals)
    }
}

#[cfg(test)]
mod tests {
    use super::{ALL, Keyword};

    #[test]
    fn every_keyword_is_found_in_any_case_and_nothing_longer_or_shorter() {
        for word in ALL {
            let found = Keyword::of(word);
            assert_ne!(found, Keyword::Other, "{}", word.escape_ascii());
            assert_eq!(Keyword::of(&word.to_ascii_lowercase()), found);
            assert_eq!(Keyword::of(&[word, &b"_"[..]].concat()), Keyword::Other);
        }
        for word in [
            &b""[..],
            b"1",
            b"users",
            b"\xc3\xa4",
            b"a_name_of_more_than_nineteen_bytes",
        ] {
            assert_eq!(Keyword::of(word), Keyword::Other);
        }
    }
}
