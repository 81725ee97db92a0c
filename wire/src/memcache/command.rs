//! The commands of the dialect: number, name and class.

use crate::message::Class;

macro_rules! commands {
    ($($(#[$doc:meta])* $variant:ident = $name:literal, $class:ident;)*) => {
        /// A command of the memcached text protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Command { $($(#[$doc])* $variant,)* }

        impl Command {
            /// All commands; each stands at the index that is its number.
            pub const ALL: &[Command] = &[$(Command::$variant,)*];

            /// The words that begin their command lines, in the same order.
            pub const NAMES: &[&str] = &[$($name,)*];

            /// The word that begins the command line.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// What it does to the data. Of `mg` this is only true without the flags `T` and `N`: see
            /// [`Request::class`](crate::message::Request::class) for what a request does.
            #[inline]
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }
        }
    };
}

commands! {
    /// `get KEY…`
    Get = "get", Read;
    /// `gets KEY…`: with the cas id.
    Gets = "gets", Read;
    /// `gat TTL KEY…`: get and touch.
    Gat = "gat", Touch;
    /// `gats TTL KEY…`: get with the cas id, and touch.
    Gats = "gats", Touch;
    /// `set KEY FLAGS TTL LENGTH`
    Set = "set", Write;
    /// `add KEY FLAGS TTL LENGTH`: only where there is none.
    Add = "add", Write;
    /// `replace KEY FLAGS TTL LENGTH`: only where there is one.
    Replace = "replace", Write;
    /// `append KEY FLAGS TTL LENGTH`: flags and expiry are not used.
    Append = "append", Write;
    /// `prepend KEY FLAGS TTL LENGTH`: flags and expiry are not used.
    Prepend = "prepend", Write;
    /// `cas KEY FLAGS TTL LENGTH ID`: only over that version.
    Cas = "cas", Write;
    /// `delete KEY`
    Delete = "delete", Delete;
    /// `incr KEY DELTA`
    Incr = "incr", Arithmetic;
    /// `decr KEY DELTA`
    Decr = "decr", Arithmetic;
    /// `touch KEY TTL`
    Touch = "touch", Touch;
    /// `flush_all [DELAY]`
    FlushAll = "flush_all", Admin;
    /// `version`
    Version = "version", Admin;
    /// `verbosity LEVEL`
    Verbosity = "verbosity", Admin;
    /// `stats [SUBJECT …]`
    Stats = "stats", Admin;
    /// `config get cluster`: ElastiCache's discovery.
    Config = "config", Admin;
    /// `quit`
    Quit = "quit", Session;
    /// `shutdown [graceful]`
    Shutdown = "shutdown", Admin;
    /// `mg KEY FLAG…`
    MetaGet = "mg", Read;
    /// `ms KEY LENGTH FLAG…`
    MetaSet = "ms", Write;
    /// `md KEY FLAG…`
    MetaDelete = "md", Delete;
    /// `ma KEY FLAG…`
    MetaArithmetic = "ma", Arithmetic;
    /// `mn`: answered when everything before it was.
    MetaNoop = "mn", Session;
    /// `me KEY`: what the server knows about an item.
    MetaDebug = "me", Admin;
    /// `lru_crawler metadump CLASSES`: every key of a store.
    LruCrawler = "lru_crawler", Admin;
}

impl Command {
    /// The command with this number.
    #[inline]
    pub const fn from_u8(number: u8) -> Option<Self> {
        if (number as usize) < Self::ALL.len() {
            Some(Self::ALL[number as usize])
        } else {
            None
        }
    }

    /// Is it one of the meta commands, which servers before 1.6 do not know?
    pub const fn is_meta(self) -> bool {
        match self {
            Self::MetaGet
            | Self::MetaSet
            | Self::MetaDelete
            | Self::MetaArithmetic
            | Self::MetaNoop
            | Self::MetaDebug => true,
            Self::Get
            | Self::Gets
            | Self::Gat
            | Self::Gats
            | Self::Set
            | Self::Add
            | Self::Replace
            | Self::Append
            | Self::Prepend
            | Self::Cas
            | Self::Delete
            | Self::Incr
            | Self::Decr
            | Self::Touch
            | Self::FlushAll
            | Self::Version
            | Self::Verbosity
            | Self::Stats
            | Self::LruCrawler
            | Self::Config
            | Self::Quit
            | Self::Shutdown => false,
        }
    }

    /// The command with this name; names are case-sensitive, as they are for memcached.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|command| command.name() == name)
    }

    /// The same for the word that begins a line: a comparison tree instead of a search.
    #[inline]
    pub(super) fn by_word(word: &[u8]) -> Option<Self> {
        Some(match word {
            b"get" => Self::Get,
            b"set" => Self::Set,
            b"mg" => Self::MetaGet,
            b"ms" => Self::MetaSet,
            b"md" => Self::MetaDelete,
            b"ma" => Self::MetaArithmetic,
            b"mn" => Self::MetaNoop,
            b"me" => Self::MetaDebug,
            b"gets" => Self::Gets,
            b"gat" => Self::Gat,
            b"gats" => Self::Gats,
            b"add" => Self::Add,
            b"cas" => Self::Cas,
            b"incr" => Self::Incr,
            b"decr" => Self::Decr,
            b"touch" => Self::Touch,
            b"delete" => Self::Delete,
            b"append" => Self::Append,
            b"replace" => Self::Replace,
            b"prepend" => Self::Prepend,
            b"version" => Self::Version,
            b"stats" => Self::Stats,
            b"quit" => Self::Quit,
            b"flush_all" => Self::FlushAll,
            b"verbosity" => Self::Verbosity,
            b"config" => Self::Config,
            b"shutdown" => Self::Shutdown,
            b"lru_crawler" => Self::LruCrawler,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    #[test]
    fn number_name_and_word_name_the_same_command() {
        for (number, &command) in Command::ALL.iter().enumerate() {
            assert_eq!(command as usize, number);
            assert_eq!(Command::from_u8(number as u8), Some(command));
            assert_eq!(command.is_meta(), command.name().len() == 2);
            assert_eq!(Command::by_name(command.name()), Some(command));
            assert_eq!(Command::by_word(command.name().as_bytes()), Some(command));
        }
        assert_eq!(Command::from_u8(Command::ALL.len() as u8), None);
        assert_eq!(Command::by_name("GET"), None);
        assert_eq!(Command::by_word(b"bget"), None);
    }
}
