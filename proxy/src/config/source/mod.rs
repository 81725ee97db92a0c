//! The kinds of sources of servers. Each is a file: how its key is read, and how its servers are.
//!
//! * `listed`: the configuration names them (`servers`)
//! * [`mod@file`]: a file names them, which is followed (`file`)
//! * `own`: the one at this proxy's side, in a fleet (`own`)
//! * `dns`: DNS names them, which the control thread asks again and again (`dns`)
//! * `elasticache`: the configuration endpoint of a cluster names them, which is asked like that
//!   (`elasticache`)
//! * `kubernetes`: the API server of Kubernetes names the endpoints of a Service, and tells each change
//!   (`kubernetes`)
//!
//! Another kind is a file here and a line in the list at its end. What the program asks of it is
//! [`ServerSource`].
//!
//! [`ServerSource`]: super::schema::ServerSource

pub mod file;

mod dns;
mod elasticache;
mod kubernetes;
mod listed;
mod own;

use std::collections::BTreeMap;

pub use self::own::Own;
pub(super) use self::{kubernetes::ServiceForm, own::OwnForm};

use super::{
    ConfigError, Diagnostic, Place,
    document::Node,
    form::{Form, Key, Section, Shape},
    reading::Reading,
    schema::{Config, Server, Source},
    section::{self, Fields, Table},
};

/// Every kind of source, in the order of the reference.
const KINDS: &[Kind] = &[
    Kind::of::<listed::Listed>(),
    Kind::of::<file::ServerFile>(),
    Kind::of::<dns::Dns>(),
    Kind::of::<elasticache::Endpoint>(),
    Kind::of::<kubernetes::Service>(),
    Kind::of::<own::Own>(),
];

/// How a kind of source stands in a configuration.
trait SourceKey {
    /// Its key in a pool.
    const KEY: &'static str;

    /// What the reference says about it.
    const ABOUT: &'static str;

    /// What may stand at the key.
    type Form: Form;

    /// The source that the value at the key stands for. The pool stands at `pool`.
    ///
    /// # Errors
    /// The value is no source; the diagnostic says where and why.
    fn source(read: <Self::Form as Form>::Value, pool: Place, cx: &Reading) -> Result<Source, Diagnostic>;
}

/// A kind of source.
struct Kind {
    key: &'static str,
    describe: fn() -> Key,
    read: fn(&Node, Place, &mut Reading) -> Result<Source, Diagnostic>,
}

impl Kind {
    const fn of<K: SourceKey>() -> Self {
        Self {
            key: K::KEY,
            describe: || Key {
                required: false,
                ..section::key::<K::Form>(K::KEY, K::ABOUT, None)
            },
            read: |node, pool, cx| {
                let read = cx.within(K::KEY, |cx| K::Form::read(node, cx))?;
                K::source(read, pool, cx)
            },
        }
    }
}

/// The key below which the key of a kind may stand as well.
const SOURCE: &str = "source";

/// The keys of a pool that name its source. Exactly one of them must be there.
#[derive(Debug)]
pub(super) struct SourceKeys;

impl SourceKeys {
    fn kinds() -> Vec<Key> {
        KINDS.iter().map(|kind| (kind.describe)()).collect()
    }

    fn words() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.key)
    }

    /// Reads the one key of a kind that is there.
    fn one(fields: &Fields<'_>, cx: &mut Reading) -> Result<Source, Diagnostic> {
        let given = KINDS
            .iter()
            .filter_map(|kind| Some((kind, fields.node(kind.key)?)));
        let given: Vec<_> = given.collect();
        if let [(one, _), (other, _), ..] = &*given {
            return Err(both(one.key, other.key, fields, cx));
        }
        match given.first() {
            Some((kind, node)) => (kind.read)(node, fields.at(), cx),
            None => Err(cx
                .refuse(fields.at(), "the pool has no servers")
                .with_remedy(format!("write {}", one_of(Self::words())))),
        }
    }
}

fn both(one: &str, other: &str, fields: &Fields<'_>, cx: &Reading) -> Diagnostic {
    cx.refuse(fields.at(), format!("the pool has both `{one}` and `{other}`"))
        .with_remedy("keep one")
}

impl Table for SourceKeys {
    type Value = Source;

    fn keys() -> Vec<Key> {
        let nested = Key {
            name: SOURCE,
            about: "The same with the kind as a key of its own: `source: {elasticache: NAME:11211}`.",
            shape: Shape::Section(Section {
                about: "Where the servers of a pool come from: one of these keys.",
                short: None,
                keys: Self::kinds(),
            }),
            required: false,
            default: None,
        };
        let mut keys = Self::kinds();
        keys.push(nested);
        keys
    }

    fn names() -> impl Iterator<Item = &'static str> {
        Self::words().chain([SOURCE])
    }

    fn take(fields: &Fields<'_>, cx: &mut Reading) -> Result<Source, Diagnostic> {
        let Some(nested) = fields.node(SOURCE) else {
            return Self::one(fields, cx);
        };
        if let Some(other) = Self::words().find(|key| fields.node(key).is_some()) {
            return Err(both(other, SOURCE, fields, cx));
        }
        cx.within(SOURCE, |cx| {
            let known: Vec<_> = Self::words().collect();
            let before = cx.mistakes.len();
            let fields = Fields::open(nested, &known, None, cx)?;
            // If the one key is misspelled, there is no other one.
            match cx.mistakes.len() > before {
                true => cx.mistakes.pop().map_or_else(|| Self::one(&fields, cx), Err),
                false => Self::one(&fields, cx),
            }
        })
    }
}

/// Joins names: `a`, `b` or `c`.
fn one_of(names: impl Iterator<Item = &'static str>) -> String {
    let names: Vec<String> = names.map(|name| format!("`{name}`")).collect();
    match names.split_last() {
        Some((last, others)) if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// The servers of each pool.
pub type Lists = BTreeMap<String, Vec<Server>>;

/// The servers of all pools. Those that the network names are missing.
///
/// # Errors
/// A file of servers is missing or refused.
pub fn lists(config: &Config) -> Result<Lists, ConfigError> {
    let mut lists = Lists::new();
    for (name, pool) in &config.pools {
        lists.insert(name.clone(), pool.source.read()?);
    }
    Ok(lists)
}
