//! Arithmetic with whole numbers. A result that does not fit into 64 bits is refused.

use crate::{
    config::Diagnostic,
    frontdoor::mcrouter::preprocess::{call::MacroResult, item::Json, meter::Meter},
};

fn int(name: &str, side: &str, value: &Json) -> Result<i64, Diagnostic> {
    match value {
        Json::Int(number) => Ok(*number),
        _ => Err(Diagnostic::whole(format!("{name}: {side} is not an integer"))),
    }
}

/// Computes a number of two.
fn two(name: &str, a: &Json, b: &Json, compute: fn(i64, i64) -> Option<i64>) -> MacroResult {
    let (a, b) = (int(name, "A", a)?, int(name, "B", b)?);
    let too_large = || Diagnostic::whole(format!("{name}: the result of {a} and {b} is no 64-bit integer"));
    compute(a, b).map(Json::Int).ok_or_else(too_large)
}

pub(super) fn add(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    two("add", a, b, i64::checked_add)
}

pub(super) fn sub(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    two("sub", a, b, i64::checked_sub)
}

pub(super) fn mul(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    two("mul", a, b, i64::checked_mul)
}

pub(super) fn div(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    not_zero("div", b)?;
    two("div", a, b, i64::checked_div)
}

pub(super) fn modulo(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    not_zero("mod", b)?;
    two("mod", a, b, i64::checked_rem)
}

fn not_zero(name: &str, b: &Json) -> Result<(), Diagnostic> {
    match b {
        Json::Int(0) => Err(Diagnostic::whole(format!("{name}: B == 0"))),
        _ => Ok(()),
    }
}

pub(super) fn and(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    two("bitwiseAnd", a, b, |a, b| Some(a & b))
}

pub(super) fn or(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    two("bitwiseOr", a, b, |a, b| Some(a | b))
}

pub(super) fn xor(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    two("bitwiseXor", a, b, |a, b| Some(a ^ b))
}

pub(super) fn not(a: &Json, _: &Meter) -> MacroResult {
    Ok(Json::Int(!int("bitwiseNot", "A", a)?))
}

pub(super) fn shift_left(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    let shift = |a: i64, b| {
        Some(
            a.cast_unsigned()
                .checked_shl(u32::try_from(b).ok()?)?
                .cast_signed(),
        )
    };
    two("bitwiseLeftShift", a, b, shift)
}

/// The bits that come in are zeros, also for a negative number.
pub(super) fn shift_right(a: &Json, b: &Json, _: &Meter) -> MacroResult {
    let shift = |a: i64, b| {
        Some(
            a.cast_unsigned()
                .checked_shr(u32::try_from(b).ok()?)?
                .cast_signed(),
        )
    };
    two("bitwiseRightShift", a, b, shift)
}
