//! Texts.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{
    config::{Diagnostic, Place, document::shortened},
    frontdoor::mcrouter::preprocess::{
        call::MacroResult,
        item::{Item, Json, ListBuilder},
        meter::Meter,
    },
};

/// The parts of a text. A text without the delimiter, or an empty delimiter, makes one part.
pub(super) fn split(dictionary: &Json, delim: &Json, meter: &Meter) -> MacroResult {
    let Json::Text(text) = dictionary else {
        return Err(Diagnostic::whole("Split: dictionary is not a string"));
    };
    let Json::Text(delim) = delim else {
        return Err(Diagnostic::whole("Split: delim is not a string"));
    };
    meter.charge(text.len())?;
    let parts: Vec<&str> = match delim.is_empty() {
        true => vec![&**text],
        false => text.split(&**delim).collect(),
    };
    let mut list = ListBuilder::new();
    for part in parts {
        list.push(Item {
            at: Place { line: 1, column: 1 },
            value: Json::text(part),
        })?;
    }
    Ok(list.done())
}

/// Refuses the configuration with a message of its own.
pub(super) fn fail(msg: &Json, _: &Meter) -> MacroResult {
    Err(Diagnostic::whole(match msg {
        Json::Text(text) => shortened(text),
        other => shortened(&other.to_string()),
    }))
}

/// Whether a text is an address of this machine.
pub(super) fn is_local_ip(ip: &Json, _: &Meter) -> MacroResult {
    let Json::Text(text) = ip else {
        return Err(Diagnostic::whole("isLocalIp: ip is not a string"));
    };
    let Ok(ip) = text.parse::<IpAddr>() else {
        return Ok(Json::Bool(false));
    };
    let loopback = [IpAddr::from(Ipv4Addr::LOCALHOST), Ipv6Addr::LOCALHOST.into()];
    let interfaces = if_addrs::get_if_addrs()
        .map_err(|error| Diagnostic::whole(format!("Can not enumerate local ips: {error}")))?;
    let is_local = loopback.contains(&ip) || interfaces.iter().any(|interface| interface.ip() == ip);
    Ok(Json::Bool(is_local))
}
