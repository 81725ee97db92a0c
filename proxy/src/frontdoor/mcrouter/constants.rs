//! The values of `%name%` in a configuration that does not define it.

use std::thread;

use super::{
    error::OptionError,
    flags::Flags,
    options::{OPTIONS, Status, ValueKind},
    preprocess::{Constant, Constants},
    threads::workers,
};
use crate::{config::document::shortened, members::host_id};

/// The constants that come from the command line. `region`, `cluster`: those of the default route.
pub(super) fn constants(
    flags: &Flags,
    default_route: &str,
    region: &str,
    cluster: &str,
) -> Result<Constants, OptionError> {
    let text = |text: &str| Constant::Text(text.to_owned());
    let mut constants = Constants::new();
    for option in OPTIONS.iter().filter(|option| option.status != Status::Ours) {
        let value = match option.takes {
            ValueKind::Number(_) => flags.text(option.name),
            ValueKind::Toggle(_) => u8::from(flags.flag(option.name) != option.is_opposite).to_string(),
            ValueKind::Text(_) | ValueKind::Acks => continue,
        };
        constants.insert(
            format!("mcr_opts-{}", option.internal_name()),
            Constant::Text(value),
        );
    }
    // As in mcrouter, a number that fits into 32 bits.
    let host = i64::from(host_id() as u32);
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    let threads = workers(flags)?.unwrap_or_else(processors) as i64;
    let known = [
        ("default-route", text(default_route)),
        ("default-region", text(region)),
        ("default-cluster", text(cluster)),
        ("hostid", Constant::Int(host)),
        ("router-name", text(&flags.router_name())),
        ("service-name", text(&flags.text("service-name"))),
        ("service-router-capable", Constant::Int(0)),
        ("router-info-name", text("Memcache")),
        ("num-proxies", Constant::Int(threads)),
    ];
    constants.extend(known.map(|(name, constant)| (name.to_owned(), constant)));
    for option in ["additional-config-params", "config-params"] {
        for given in flags
            .text(option)
            .split(',')
            .filter(|given| !given.trim().is_empty())
        {
            let Some((name, value)) = given.split_once(':') else {
                return Err(OptionError::BadValue {
                    option,
                    takes: "`name:value,…`",
                    found: shortened(given),
                });
            };
            constants.insert(name.trim().to_owned(), text(value));
        }
    }
    Ok(constants)
}
