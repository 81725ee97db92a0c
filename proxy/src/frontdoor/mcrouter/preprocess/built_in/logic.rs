//! Conditions and branches.

use crate::{
    config::Diagnostic,
    frontdoor::mcrouter::preprocess::{
        call::{LazyArguments, MacroResult},
        item::{Item, Json},
        meter::Meter,
        scope::Expand,
    },
};

pub(super) fn equals(a: &Json, b: &Json, meter: &Meter) -> MacroResult {
    meter.charge(a.size().min(b.size()))?;
    Ok(Json::Bool(a == b))
}

pub(super) fn less(a: &Json, b: &Json, meter: &Meter) -> MacroResult {
    meter.charge(a.size().min(b.size()))?;
    let order = a
        .order(b)
        .ok_or_else(|| Diagnostic::whole("Can not compare objects"))?;
    Ok(Json::Bool(order.is_lt()))
}

pub(super) fn not(a: &Json, _: &Meter) -> MacroResult {
    match a {
        Json::Bool(flag) => Ok(Json::Bool(!flag)),
        _ => Err(Diagnostic::whole("not: A is not bool")),
    }
}

/// A condition that must be `true` or `false`.
fn condition(
    name: &str,
    side: &str,
    unread: &LazyArguments<'_>,
    expander: &mut dyn Expand,
) -> Result<bool, Diagnostic> {
    let item = unread.take(side, expander)?;
    match item.value {
        Json::Bool(flag) => Ok(flag),
        other => Err(Diagnostic::whole(format!(
            "{name}: {side} is {}, expected bool",
            other.kind()
        ))),
    }
}

pub(super) fn and(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let flag = condition("and", "A", unread, expander)? && condition("and", "B", unread, expander)?;
    Ok(Item {
        at: unread.at,
        value: Json::Bool(flag),
    })
}

pub(super) fn or(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let flag = condition("or", "A", unread, expander)? || condition("or", "B", unread, expander)?;
    Ok(Item {
        at: unread.at,
        value: Json::Bool(flag),
    })
}

/// `if`. What is not chosen is not expanded.
pub(super) fn choose(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let chosen = match condition("If", "condition", unread, expander)? {
        true => "is_true",
        false => "is_false",
    };
    unread.take(chosen, expander)
}

/// `define`: the result, for which the object's `vars` hold.
pub(super) fn define(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    unread.take("result", expander)
}

/// Whether a name stands for something.
pub(super) fn defined(expander: &mut dyn Expand, unread: &LazyArguments<'_>) -> Result<Item, Diagnostic> {
    let Json::Text(name) = unread.take("name", expander)?.value else {
        return Err(Diagnostic::whole("Defined: name is not a string"));
    };
    let is_defined = unread.scope.contains(&name) || expander.has_constant(&name);
    Ok(Item {
        at: unread.at,
        value: Json::Bool(is_defined),
    })
}
