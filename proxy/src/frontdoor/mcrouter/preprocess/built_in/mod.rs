//! The built-in macros, in a file for each family.

mod arithmetic;
mod cast;
mod collection;
mod hash;
mod import;
mod logic;
mod select;
mod shuffle;
mod text;
mod walk;

use super::{
    call::{Body, BuiltIn, Macro, MissingArgument, Parameter},
    item::{Item, Map},
    scope::{Expand, Scope},
};
use crate::config::{Diagnostic, Place};

/// A macro, its parameters, and how many of them need not be given.
type Row = (&'static str, &'static [&'static str], usize, BuiltIn);

const A_B: &[&str] = &["A", "B"];
const VALUE: &[&str] = &["value"];
const DICTIONARY: &[&str] = &["dictionary"];

use BuiltIn::{Lazy, One, Three, Two};

static MACROS: &[Row] = &[
    ("import", &["path", "default"], 1, Lazy(import::import)),
    ("hash", VALUE, 0, One(hash::hash)),
    ("weightedHash", &["dictionary", "key"], 0, Two(hash::weighted)),
    ("int", VALUE, 0, One(cast::int)),
    ("double", VALUE, 0, One(cast::double)),
    ("str", VALUE, 0, One(cast::string)),
    ("bool", VALUE, 0, One(cast::boolean)),
    ("isArray", VALUE, 0, One(cast::is_array)),
    ("isBool", VALUE, 0, One(cast::is_bool)),
    ("isInt", VALUE, 0, One(cast::is_int)),
    ("isDouble", VALUE, 0, One(cast::is_double)),
    ("isObject", VALUE, 0, One(cast::is_object)),
    ("isString", VALUE, 0, One(cast::is_string)),
    ("keys", DICTIONARY, 0, One(collection::keys)),
    ("values", DICTIONARY, 0, One(collection::values)),
    ("size", DICTIONARY, 0, One(collection::size)),
    ("empty", DICTIONARY, 0, One(collection::empty)),
    ("contains", &["dictionary", "key"], 0, Two(collection::contains)),
    ("merge", &["params"], 0, One(collection::merge)),
    ("range", &["from", "to"], 0, Two(collection::range)),
    ("sort", DICTIONARY, 0, One(collection::sort)),
    (
        "select",
        &["dictionary", "key", "default"],
        1,
        Lazy(select::select),
    ),
    ("slice", &["dictionary", "from", "to"], 0, Three(select::slice)),
    ("set", &["dictionary", "key", "value"], 0, Three(select::set)),
    ("shuffle", &["dictionary", "seed"], 1, Lazy(shuffle::shuffle)),
    ("split", &["dictionary", "delim"], 0, Two(text::split)),
    ("fail", &["msg"], 0, One(text::fail)),
    ("isLocalIp", &["ip"], 0, One(text::is_local_ip)),
    ("equals", A_B, 0, Two(logic::equals)),
    ("less", A_B, 0, Two(logic::less)),
    ("and", A_B, 0, Lazy(logic::and)),
    ("or", A_B, 0, Lazy(logic::or)),
    ("not", &["A"], 0, One(logic::not)),
    (
        "if",
        &["condition", "is_true", "is_false"],
        0,
        Lazy(logic::choose),
    ),
    ("define", &["result"], 0, Lazy(logic::define)),
    ("defined", &["name"], 0, Lazy(logic::defined)),
    ("add", A_B, 0, Two(arithmetic::add)),
    ("sub", A_B, 0, Two(arithmetic::sub)),
    ("mul", A_B, 0, Two(arithmetic::mul)),
    ("div", A_B, 0, Two(arithmetic::div)),
    ("mod", A_B, 0, Two(arithmetic::modulo)),
    ("bitwiseAnd", A_B, 0, Two(arithmetic::and)),
    ("bitwiseOr", A_B, 0, Two(arithmetic::or)),
    ("bitwiseXor", A_B, 0, Two(arithmetic::xor)),
    ("bitwiseNot", &["A"], 0, One(arithmetic::not)),
    ("bitwiseLeftShift", A_B, 0, Two(arithmetic::shift_left)),
    ("bitwiseRightShift", A_B, 0, Two(arithmetic::shift_right)),
];

/// A macro that goes through a list or an object, and is written as an object alone.
pub(super) type Walk = fn(&mut dyn Expand, &Map, Place, &Scope<'_>) -> Result<Item, Diagnostic>;

/// The macro that goes through a list or an object, of that name.
pub(super) fn walk(name: &str) -> Option<Walk> {
    match name {
        "transform" => Some(walk::transform),
        "process" => Some(walk::process),
        "foreach" => Some(walk::foreach),
        _ => None,
    }
}

/// All macros that may be written as strings.
pub(super) fn all() -> impl Iterator<Item = Macro> {
    MACROS
        .iter()
        .filter_map(|(name, parameters, optional, built_in)| {
            let required = parameters.len() - optional;
            let parameter = |(i, name): (usize, &&str)| Parameter {
                name: (*name).into(),
                otherwise: if i < required {
                    MissingArgument::Refused
                } else {
                    MissingArgument::Nothing
                },
            };
            let parameters = parameters.iter().enumerate().map(parameter).collect();
            Macro::new((*name).into(), parameters, Body::BuiltIn(*built_in)).ok()
        })
}
