//! What `%name%` stands for in a configuration that does not define it.

use super::{
    error::OptionError,
    flags::Flags,
    options::{OPTIONS, Status, Takes},
    preprocess::{Constant, Constants},
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
            Takes::Number(_) => flags.text(option.name),
            Takes::Toggle(_) => u8::from(flags.flag(option.name)).to_string(),
            Takes::Text(_) | Takes::Acks => continue,
        };
        constants.insert(
            format!("mcr_opts-{}", option.internal_name()),
            Constant::Text(value),
        );
    }
    // As in mcrouter, a number that fits into 32 bits.
    let host = i64::from(host_id() as u32);
    let known = [
        ("default-route", text(default_route)),
        ("default-region", text(region)),
        ("default-cluster", text(cluster)),
        ("hostid", Constant::Int(host)),
        ("router-name", text(&router_name(flags))),
        ("service-name", text(&flags.text("service-name"))),
        ("service-router-capable", Constant::Int(0)),
        ("router-info-name", text("Memcache")),
        ("num-proxies", Constant::Int(threads(flags))),
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

/// The name of this proxy in the names of files: its first port.
fn router_name(flags: &Flags) -> String {
    let ports = flags.text("port");
    match ports.split(',').map(str::trim).find(|port| !port.is_empty()) {
        Some(port) => port.to_owned(),
        None => "0".to_owned(),
    }
}

/// The number of threads that serve clients.
fn threads(flags: &Flags) -> i64 {
    let asked = match flags.text("proxy-threads") {
        none if none.is_empty() => flags.text("num-proxies"),
        threads => threads,
    };
    let processors = || std::thread::available_parallelism().map_or(1, usize::from) as i64;
    asked.parse().unwrap_or_else(|_| processors())
}
