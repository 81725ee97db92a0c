//! Hashes of texts and numbers, with which a configuration spreads hosts.

use proxima_wire::hash::spooky64;

use crate::{
    config::{Diagnostic, document::shortened},
    frontdoor::mcrouter::preprocess::{call::MacroResult, item::Json, meter::Meter},
};

/// A 64-bit hash: SpookyHash of a text, or a number whose bits are mixed.
pub(super) fn hash(value: &Json, meter: &Meter) -> MacroResult {
    let hash = match value {
        Json::Int(number) => mixed(number.cast_unsigned()),
        Json::Text(text) => {
            meter.charge(value.size())?;
            spooky64(text.as_bytes(), 0)
        }
        other => {
            let problem = format!("Hash: can not cast {} to int or string", other.kind());
            return Err(Diagnostic::whole(problem));
        }
    };
    Ok(Json::Int(hash.cast_signed()))
}

/// A name of a dictionary of weights. Each name gets keys in proportion to its weight.
pub(super) fn weighted(dictionary: &Json, key: &Json, meter: &Meter) -> MacroResult {
    let Json::Map(map) = dictionary else {
        let problem = format!(
            "WeightedHash: dictionary is {}, expected object",
            dictionary.kind()
        );
        return Err(Diagnostic::whole(problem));
    };
    meter.charge(dictionary.size())?;
    let mut weights = Vec::with_capacity(map.entries.len());
    for (name, item) in &map.entries {
        let weight = match item.value {
            Json::Int(number) => number as f64,
            Json::Double(number) => number,
            ref other => {
                let (name, kind) = (shortened(&name.text), other.kind());
                let problem = format!("WeightedHash: {name} weight is {kind}, expected number");
                return Err(Diagnostic::at(item.at, problem));
            }
        };
        if weight < -0.01 {
            let problem = format!(
                "WeightedHash: {} weight {weight} is negative",
                shortened(&name.text)
            );
            return Err(Diagnostic::at(item.at, problem));
        }
        weights.push((&name.text, weight.max(0.0)));
    }
    let sum: f64 = weights.iter().map(|(_, weight)| weight).sum();
    if sum < f64::EPSILON {
        return Err(Diagnostic::whole("WeightedHash: the sum of the weights is 0"));
    }
    let key = match key {
        Json::Int(number) => number.cast_unsigned(),
        Json::Text(text) => spooky64(text.as_bytes(), 0),
        other => {
            let problem = format!("WeightedHash: key is {}, expected string or int", other.kind());
            return Err(Diagnostic::whole(problem));
        }
    };
    let score = |name: &str, weight: f64| {
        let (weight, hash) = (weight / sum, mixed(fnv1(name.as_bytes()).wrapping_add(key)));
        match weight > f64::EPSILON {
            true => (hash as f64 / u64::MAX as f64).powf(1.0 / weight),
            false => 0.0,
        }
    };
    let mut best = (-1.0, None);
    for (name, weight) in weights {
        let score = score(name, weight);
        if score > best.0 {
            best = (score, Some(name));
        }
    }
    let chosen = best
        .1
        .ok_or_else(|| Diagnostic::whole("WeightedHash: dictionary is empty"))?;
    Ok(Json::Text(chosen.clone()))
}

/// Thomas Wang's mix of 64 bits (public domain).
fn mixed(number: u64) -> u64 {
    let mut x = (!number).wrapping_add(number << 21);
    x ^= x >> 24;
    x = x.wrapping_mul(1 + (1 << 3) + (1 << 8));
    x ^= x >> 14;
    x = x.wrapping_mul(1 + (1 << 2) + (1 << 4));
    x ^= x >> 28;
    x.wrapping_add(x << 31)
}

/// FNV-1 of 64 bits, over bytes with a sign.
fn fnv1(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        let byte = i64::from(byte.cast_signed()).cast_unsigned();
        hash.wrapping_mul(0x0100_0000_01b3) ^ byte
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        assert_eq!(spooky64(b"abcd", 0).cast_signed(), 6_660_178_300_034_425_268);
        assert_eq!(mixed(2313).cast_signed(), -4_996_987_850_411_076_878);
        // The published answers of FNV-1.
        assert_eq!(fnv1(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1(b"a"), 0xaf63_bd4c_8601_b7be);
        assert_eq!(fnv1(b"foobar"), 0x340d_8765_a4dd_a9c2);
    }
}
