//! The commands of memcached, one row each: number, word, class, form, and the effect on copies.

use crate::message::Class;

/// The form of a command's lines and of its replies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Keys; the reply is values behind `VALUE`, and `END`.
    Retrieval,
    /// Keys; the reply is lines behind `META`, and `END`.
    Metadata,
    /// Words that have their places; the reply is a line.
    Text,
    /// A meta command with flags after its key. Its replies have flags after their code.
    Flags,
    /// A meta command without flags.
    Meta,
}

/// The effect of a command on copies of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CopyEffect {
    /// It looks at any copy.
    Look,
    /// It looks at the copy that decides.
    LookAtHome,
    /// It does the same to all copies.
    Everywhere,
    /// One copy decides, and the others get the value that the request has.
    Value,
    /// One copy decides, and the others get the expiry time that the request has.
    Expiry,
    /// One copy decides, and the request does not tell the resulting value.
    Gone,
}

/// Converts the words of the table, which are text.
const fn text(word: &'static [u8]) -> &'static str {
    match std::str::from_utf8(word) {
        Ok(text) => text,
        Err(_) => panic!("no text"),
    }
}

macro_rules! commands {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $class:ident, $form:ident, $copied:ident;)*) => {
        /// A command of the memcached text protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Command { $($(#[$doc])* $variant,)* }

        impl Command {
            /// All commands; each stands at the index that is its number.
            pub const ALL: &[Command] = &[$(Command::$variant,)*];

            /// The words with which command lines begin, in the same order.
            pub const NAMES: &[&str] = &[$(text($word),)*];

            /// The word with which the command line begins.
            pub const fn name(self) -> &'static str {
                Self::NAMES[self as usize]
            }

            /// The effect on the data. For `mg` it holds only without the flags `T` and `N`;
            /// [`Request::class`](crate::message::Request::class) is that of a request.
            #[inline]
            pub const fn class(self) -> Class {
                match self { $(Self::$variant => Class::$class,)* }
            }

            /// The form of its lines.
            #[inline]
            pub(super) const fn form(self) -> Form {
                match self { $(Self::$variant => Form::$form,)* }
            }

            /// The effect on copies, unless its flags change it.
            #[inline]
            pub(super) const fn copied(self) -> CopyEffect {
                match self { $(Self::$variant => CopyEffect::$copied,)* }
            }

            /// The command for this word, by a tree of comparisons instead of a search.
            #[inline]
            pub(super) fn by_word(word: &[u8]) -> Option<Self> {
                Some(match word {
                    $($word => Self::$variant,)*
                    _ => return None,
                })
            }
        }
    };
}

commands! {
    /// `get KEY…`
    Get = b"get", Read, Retrieval, Look;
    /// `gets KEY…`: with the cas id.
    Gets = b"gets", Read, Retrieval, LookAtHome;
    /// `gat TTL KEY…`: get and touch.
    Gat = b"gat", Touch, Retrieval, Expiry;
    /// `gats TTL KEY…`: get with the cas id, and touch.
    Gats = b"gats", Touch, Retrieval, Expiry;
    /// `set KEY FLAGS TTL LENGTH`
    Set = b"set", Write, Text, Everywhere;
    /// `add KEY FLAGS TTL LENGTH`: only where the key is missing.
    Add = b"add", Write, Text, Value;
    /// `replace KEY FLAGS TTL LENGTH`: only where there is one.
    Replace = b"replace", Write, Text, Value;
    /// `append KEY FLAGS TTL LENGTH`: flags and expiry are not used.
    Append = b"append", Write, Text, Gone;
    /// `prepend KEY FLAGS TTL LENGTH`: flags and expiry are not used.
    Prepend = b"prepend", Write, Text, Gone;
    /// `cas KEY FLAGS TTL LENGTH ID`: only over that version.
    Cas = b"cas", Write, Text, Value;
    /// `delete KEY`
    Delete = b"delete", Delete, Text, Everywhere;
    /// `incr KEY DELTA`
    Incr = b"incr", Arithmetic, Text, Gone;
    /// `decr KEY DELTA`
    Decr = b"decr", Arithmetic, Text, Gone;
    /// `touch KEY TTL`
    Touch = b"touch", Touch, Text, Expiry;
    /// `flush_all [DELAY]`
    FlushAll = b"flush_all", Admin, Text, Everywhere;
    /// `version`
    Version = b"version", Admin, Text, Look;
    /// `verbosity LEVEL`
    Verbosity = b"verbosity", Admin, Text, Look;
    /// `stats [SUBJECT …]`
    Stats = b"stats", Admin, Text, Look;
    /// `config get cluster`: ElastiCache's discovery.
    Config = b"config", Admin, Text, Look;
    /// `quit`
    Quit = b"quit", Session, Text, Look;
    /// `shutdown [graceful]`
    Shutdown = b"shutdown", Admin, Text, Look;
    /// `mg KEY FLAG…`
    MetaGet = b"mg", Read, Flags, Look;
    /// `ms KEY LENGTH FLAG…`
    MetaSet = b"ms", Write, Flags, Everywhere;
    /// `md KEY FLAG…`
    MetaDelete = b"md", Delete, Flags, Everywhere;
    /// `ma KEY FLAG…`
    MetaArithmetic = b"ma", Arithmetic, Flags, Gone;
    /// `mn`: answered after all commands before it.
    MetaNoop = b"mn", Session, Meta, Look;
    /// `me KEY`: the metadata of an item.
    MetaDebug = b"me", Admin, Meta, Look;
    /// `lru_crawler metadump CLASSES`: every key of a store.
    LruCrawler = b"lru_crawler", Admin, Text, Look;
    /// `lease-get KEY…`: a miss comes with a token for the client that fills it.
    LeaseGet = b"lease-get", Read, Retrieval, Look;
    /// `lease-set KEY TOKEN FLAGS TTL LENGTH`: stores only with the token of the last miss.
    LeaseSet = b"lease-set", Write, Text, Look;
    /// `metaget KEY…`: the age and the expiry time of a value.
    Metadata = b"metaget", Read, Metadata, Look;
}

impl Command {
    /// The command with this number.
    #[inline]
    pub const fn from_number(number: u16) -> Option<Self> {
        if (number as usize) < Self::ALL.len() {
            Some(Self::ALL[number as usize])
        } else {
            None
        }
    }

    /// Whether mcrouter has this command, and memcached does not know it.
    #[inline]
    pub const fn is_mcrouters(self) -> bool {
        matches!(self, Self::LeaseGet | Self::LeaseSet | Self::Metadata)
    }

    /// Whether this is a meta command, which servers before 1.6 do not know.
    pub const fn is_meta(self) -> bool {
        matches!(self.form(), Form::Flags | Form::Meta)
    }

    /// The command with this name; names are case-sensitive, as they are for memcached.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|command| command.name() == name)
    }
}

#[cfg(test)]
mod tests {
    use super::Command;

    #[test]
    fn number_name_and_word_name_the_same_command() {
        for (number, &command) in Command::ALL.iter().enumerate() {
            assert_eq!(command as usize, number);
            assert_eq!(Command::from_number(number as u16), Some(command));
            assert_eq!(command.is_meta(), command.name().len() == 2);
            assert_eq!(Command::by_name(command.name()), Some(command));
            assert_eq!(Command::by_word(command.name().as_bytes()), Some(command));
        }
        assert_eq!(Command::from_number(Command::ALL.len() as u16), None);
        assert_eq!(Command::by_name("GET"), None);
        assert_eq!(Command::by_word(b"bget"), None);
    }
}
