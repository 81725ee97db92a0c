//! Routes that lead a request to a child by its key, its command, or its client's login.

use std::collections::BTreeMap;

use super::{
    Keyed, Route, Spec,
    form::RouteForm,
    spec::{Handle, handle},
};
use crate::config::{
    Diagnostic,
    document::{Name, Node, Value, shortened},
    form::{ByName, Form, List, Named, Optional, Shape, Text},
    operations,
    reading::Reading,
    section::section,
    suggest,
};

/// The routes in the order of their names.
fn sorted(routes: Vec<(Name, Route)>) -> BTreeMap<String, Route> {
    routes
        .into_iter()
        .map(|(name, route)| (name.text, route))
        .collect()
}

/// The child of the command, or of its group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByOperation;

impl Spec for ByOperation {
    const NAME: &'static str = "by_operation";
}

pub(super) const BY_OPERATION: Handle = handle! {
    /// A child for each command or group of commands. A command's own entry wins over its group's. A command
    /// without either goes to `default`, and without that is answered as by `null`. An `mg` with `N` may
    /// store and is a write, one with `T` is a touch, any other is a read. For Redis the words are its
    /// commands that have a key, and the same groups.
    ByOperation::NAME, OperationsForm => |(operations, default)| {
        Route::keyed(ByOperation, operations, default)
    }
};

/// Routes by command or group of commands, and the default route.
#[derive(Debug)]
struct OperationsForm;

impl Form for OperationsForm {
    type Value = (BTreeMap<String, Route>, Option<Box<Route>>);

    fn shape() -> Shape {
        let words = operations::all_words()
            .chain([("default", "all others")])
            .collect();
        Shape::ByWord {
            words,
            of: Box::new(Shape::Route),
        }
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let Value::Map(entries) = &node.value else {
            return Err(cx.expected(
                node,
                "a map, each route with a command or `default` before a colon",
            ));
        };
        let known = operations::all_words().map(|(word, _)| word).chain(["default"]);
        let read = |(name, node): &(Name, Node)| {
            let route = cx.within(&*name.text, |cx| RouteForm::read(node, cx))?;
            match known.clone().any(|word| word == name.text) {
                true => Ok((name.text.clone(), route)),
                false => Err(Diagnostic {
                    remedy: suggest::remedy(&name.text, known.clone()),
                    ..cx.refuse(name.at, format!("unknown operation `{}`", shortened(&name.text)))
                }),
            }
        };
        let read = entries.iter().map(read).collect();
        let mut operations: BTreeMap<String, Route> = cx.all(read)?.into_iter().collect();
        let default = operations.remove("default").map(Box::new);
        Ok((operations, default))
    }
}

/// The child of the longest prefix with which the key begins.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByPrefix;

impl Spec for ByPrefix {
    const NAME: &'static str = "by_prefix";
}

pub(super) const BY_PREFIX: Handle = handle! {
    /// The child whose prefix the key begins with. If there are several, the longest prefix wins.
    ByPrefix::NAME, ByPrefixKeys => |keys: ByPrefixKeys| {
        Route::keyed(ByPrefix, sorted(keys.prefixes), keys.default.map(Box::new))
    }
};

section! {
    /// Routes by prefix of the key.
    struct ByPrefixKeys {
        /// Prefix: route.
        prefixes: ByName<RouteForm, Prefix>,
        /// The route for keys with no such prefix. Without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

/// Prefixes of keys.
#[derive(Debug)]
struct Prefix;

impl Named for Prefix {
    const WHAT: &'static str = "prefix";
}

/// What a client says of itself at its login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfLogin {
    /// The user.
    User,
    /// The default schema, which it may change later.
    Schema,
}

impl OfLogin {
    /// The name of the route that looks at it.
    pub const fn route(self) -> &'static str {
        match self {
            Self::User => ByUser::NAME,
            Self::Schema => BySchema::NAME,
        }
    }

    /// Its name.
    pub const fn noun(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Schema => "schema",
        }
    }
}

impl Keyed {
    /// What a client says of itself by which the route chooses; `None`: it looks at requests.
    pub const fn of_login(&self) -> Option<OfLogin> {
        match self {
            Self::ByUser(_) => Some(OfLogin::User),
            Self::BySchema(_) => Some(OfLogin::Schema),
            _ => None,
        }
    }
}

/// The child of the user as whom a client has logged in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByUser;

impl Spec for ByUser {
    const NAME: &'static str = "by_user";
}

pub(super) const BY_USER: Handle = handle! {
    /// The child of the user as whom a client has logged in, for MySQL.
    ByUser::NAME, ByUserKeys => |keys: ByUserKeys| {
        Route::keyed(ByUser, sorted(keys.users), keys.default.map(Box::new))
    }
};

section! {
    /// Routes by user.
    struct ByUserKeys {
        /// User: route.
        users: ByName<RouteForm, UserName>,
        /// The route for other users. Without it their statements are answered with an error.
        default: Optional<RouteForm>,
    }
}

/// Names of users.
#[derive(Debug)]
pub(in crate::config) struct UserName;

impl Named for UserName {
    const WHAT: &'static str = "user";
}

/// The child of the schema that a client uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BySchema;

impl Spec for BySchema {
    const NAME: &'static str = "by_schema";
}

pub(super) const BY_SCHEMA: Handle = handle! {
    /// The child of the schema that a client uses, for MySQL. `USE` goes to the route of the schema that it
    /// names, and any other statement to that of the client's own, whatever schemas its text names.
    BySchema::NAME, BySchemaKeys => |keys: BySchemaKeys| {
        Route::keyed(BySchema, sorted(keys.schemas), keys.default.map(Box::new))
    }
};

section! {
    /// Routes by schema.
    struct BySchemaKeys {
        /// Schema: route.
        schemas: ByName<RouteForm, SchemaName>,
        /// The route for other schemas, and for clients that have named none. Without it their statements are
        /// answered with an error.
        default: Optional<RouteForm>,
    }
}

/// Names of schemas.
#[derive(Debug)]
struct SchemaName;

impl Named for SchemaName {
    const WHAT: &'static str = "schema";
}

/// The child of the first pattern that the key matches. Patterns are globs (`*`, `?`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ByKeyPattern;

impl Spec for ByKeyPattern {
    const NAME: &'static str = "by_key_pattern";
}

pub(super) const BY_KEY_PATTERN: Handle = handle! {
    /// The child of the first pattern that the whole key matches.
    ByKeyPattern::NAME, ByKeyPatternKeys => |keys: ByKeyPatternKeys| {
        let patterns = keys.patterns.into_iter().map(|(name, route)| (name.text, route));
        Route::Keyed(ByKeyPattern.into(), patterns.collect(), keys.default.map(Box::new))
    }
};

section! {
    /// Routes by pattern of the key.
    struct ByKeyPatternKeys {
        /// Pattern: route, tried in the order of the text. `*` stands for any characters, `?` for one.
        patterns: ByName<RouteForm, Pattern>,
        /// The route for keys that match no pattern. Without it they are answered with an error.
        default: Optional<RouteForm>,
    }
}

/// Patterns of keys.
#[derive(Debug)]
struct Pattern;

impl Named for Pattern {
    const WHAT: &'static str = "pattern";
}

/// mcrouter's prefixes: `/region/cluster/` → route. The default one serves keys without a prefix, and may
/// take those with an unknown one.
#[derive(Clone, Debug, PartialEq)]
pub struct ByRoutingPrefix {
    /// The prefix of the default route.
    pub default: String,
    /// Keys that lead to no route go to the default one.
    pub takes_unknown: bool,
}

impl Spec for ByRoutingPrefix {
    const NAME: &'static str = "by_routing_prefix";
}

/// The first route for these keys, the second one for all others.
#[derive(Clone, Debug, PartialEq)]
pub struct ByKey {
    /// The keys.
    pub keys: Vec<String>,
}

impl Spec for ByKey {
    const NAME: &'static str = "by_key";
}

pub(super) const BY_KEY: Handle = handle! {
    /// One route for some keys, and another one for the rest.
    ByKey::NAME, ByKeyKeys => |keys: ByKeyKeys| {
        Route::pair(ByKey { keys: keys.keys }, keys.listed, keys.default)
    }
};

section! {
    /// Keys with a route of their own.
    struct ByKeyKeys {
        /// The keys.
        keys: List<Text>,
        /// The route for these keys.
        listed: RouteForm,
        /// The route for all others.
        default: RouteForm,
    }
}
