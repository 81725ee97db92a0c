//! The words that decide what a statement does.

macro_rules! keywords {
    ($($name:ident $text:literal,)*) => {
        /// A word without quotes.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Keyword {
            $($name,)*
            /// Any other.
            Other,
        }

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
    Instance b"INSTANCE", Into b"INTO", Kill b"KILL", Load b"LOAD", Local b"LOCAL", Lock b"LOCK", Next b"NEXT",
    Nextval b"NEXTVAL", Optimize b"OPTIMIZE", Outfile b"OUTFILE", Partitions b"PARTITIONS",
    Password b"PASSWORD", Persist b"PERSIST", PersistOnly b"PERSIST_ONLY", Prepare b"PREPARE",
    Previous b"PREVIOUS", Purge b"PURGE", Release b"RELEASE", Rename b"RENAME", Repair b"REPAIR",
    Replace b"REPLACE", Reset b"RESET", Resource b"RESOURCE", Restart b"RESTART", Revoke b"REVOKE",
    Rollback b"ROLLBACK", Savepoint b"SAVEPOINT", Select b"SELECT", Session b"SESSION", Set b"SET",
    Share b"SHARE", Show b"SHOW", Shutdown b"SHUTDOWN", SqlCalcFoundRows b"SQL_CALC_FOUND_ROWS",
    Start b"START", Statement b"STATEMENT", Stop b"STOP", Table b"TABLE", Tables b"TABLES",
    Temporary b"TEMPORARY", Transaction b"TRANSACTION", Truncate b"TRUNCATE", Uninstall b"UNINSTALL",
    Unlock b"UNLOCK", Update b"UPDATE", Use b"USE", Value b"VALUE", Values b"VALUES", With b"WITH",
    Work b"WORK", Xa b"XA", Xml b"XML",
}

/// Bytes of the longest keyword.
const LONGEST: usize = 19;

impl Keyword {
    /// The keyword that this word is, in any case.
    #[inline]
    pub(super) fn of(word: &[u8]) -> Self {
        if word.len() < 2 || word.len() > LONGEST {
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
