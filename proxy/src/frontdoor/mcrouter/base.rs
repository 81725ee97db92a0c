//! The base configuration: ports, threads and limits, which only the command line sets.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    time::Duration,
};

use super::{
    error::OptionError,
    flags::Flags,
    prefix::{region_and_cluster, routing_prefix},
    settings::NEVER,
    threads::workers,
    tls::with_clients,
};
use crate::config::{
    check_address, listen_address,
    schema::{
        Access, Config, Door, Embedded, Leaf, Limits, Listener, Permissions, Protocol, ReplyStyle, Route,
        ServerTls, SocketOptions, SpoolOptions,
    },
};

/// The configuration without its pools and routes.
pub(super) fn base(flags: &Flags) -> Result<Config, OptionError> {
    let bound = |name: &str| match flags.number(name) {
        0 => usize::MAX,
        bound => usize::try_from(bound).unwrap_or(usize::MAX),
    };
    let write_timeout = match flags.number("client-timeout") {
        0 => NEVER,
        millis => Duration::from_millis(millis).min(NEVER),
    };
    // 1 asks for as many clients as there may be open files. Clients would reach the kernel's limit first.
    let clients = if flags.number("max-conns") == 1 {
        usize::MAX
    } else {
        bound("max-conns")
    };
    let requests_in_flight = bound("max-client-outstanding-reqs");
    let limits = Limits {
        clients,
        requests_in_flight,
        write_timeout,
        server_idle: Duration::from_millis(flags.number("reset-inactive-connection-interval")).min(NEVER),
        ..Limits::DEFAULT
    };
    Ok(Config {
        workers: workers(flags)?,
        listeners: listeners(flags)?,
        admin: admin(flags)?,
        state: flags.path("keep-writing-state"),
        limits,
        embedded: Embedded::DEFAULT,
        spool: spool(flags)?,
        ..Config::default()
    })
}

/// The address of the admin port. `None` without an admin port.
fn admin(flags: &Flags) -> Result<Option<String>, OptionError> {
    match flags.text("admin") {
        none if none.is_empty() => Ok(None),
        address => listen_address(&address).map(Some).map_err(OptionError::Admin),
    }
}

/// The asynchronous log. `None`: it is off.
fn spool(flags: &Flags) -> Result<Option<SpoolOptions>, OptionError> {
    let Some(dir) = flags
        .path("async-dir")
        .filter(|_| !flags.flag("asynclog-disable"))
    else {
        return Ok(None);
    };
    let option = "asynclog-port-override";
    let port = flags.number(option);
    let port = u16::try_from(port).map_err(|_| OptionError::BadValue {
        option,
        takes: "a port, or 0 for each server's own",
        found: port.to_string(),
    })?;
    let route = routing_prefix(&flags.text("route-prefix")).unwrap_or_default();
    let (region, cluster) = region_and_cluster(&route).unwrap_or_default();
    Ok(Some(SpoolOptions {
        dir,
        is_second_form: flags.flag("use-asynclog-version2"),
        port: (port > 0).then_some(port),
        router: flags.router_name(),
        region: region.to_owned(),
        cluster: cluster.to_owned(),
    }))
}

/// The listeners. Their route is the root of the tree.
fn listeners(flags: &Flags) -> Result<Vec<Listener>, OptionError> {
    let listener = |address, tls| Listener {
        protocol: Protocol::MEMCACHED,
        access: Access::Open,
        permissions: Permissions::default(),
        discovery: None,
        socket: SocketOptions {
            backlog: i32::try_from(flags.number("tcp-listen-backlog")).unwrap_or(i32::MAX),
            ..SocketOptions::default()
        },
        tls,
        server_version: None,
        door: Door::default(),
        reply_style: ReplyStyle::Mcrouter {
            flush: flags.flag("enable-flush-cmd"),
        },
        address,
        route: Route::Leaf(Leaf::Null),
    };
    // The number is not looked at before it is used: a check of the configuration does not inherit the
    // socket.
    match flags.text("listen-sock-fd").parse() {
        Ok(-1) | Err(_) => {}
        Ok(number @ 0..) => return Ok(vec![listener(format!("fd:{number}"), None)]),
        Ok(number) => return Err(OptionError::Descriptor(number)),
    }
    let (ports, socket) = (flags.text("port"), flags.text("unix-domain-sock"));
    if !socket.is_empty() {
        let address = format!("unix:{socket}");
        return match check_address(&address, true) {
            _ if !ports.is_empty() => Err(OptionError::PortAndSocket),
            Ok(()) => Ok(vec![listener(address, None)]),
            Err(why) => Err(OptionError::Socket(why)),
        };
    }
    let (ports, secure) = (numbers(&ports)?, numbers(&flags.text("ssl-port"))?);
    if ports.is_empty() && secure.is_empty() {
        return Err(OptionError::Ports);
    }
    let tls = match secure.is_empty() {
        true => None,
        false => Some(with_clients(flags)?),
    };
    let given = flags.text("listen-addresses");
    let hosts: Vec<IpAddr> = match given.as_str() {
        "" => vec![any()],
        _ => given.split(',').map(host).collect::<Result<_, _>>()?,
    };
    let at = |ports: &[u16], tls: &Option<ServerTls>| {
        let at = |host: &IpAddr, port: &u16| SocketAddr::new(*host, *port).to_string();
        let addresses = hosts
            .iter()
            .flat_map(|host| ports.iter().map(move |port| at(host, port)));
        addresses
            .map(|address| listener(address, tls.clone()))
            .collect::<Vec<_>>()
    };
    Ok([at(&ports, &None), at(&secure, &tls)].concat())
}

/// Ports with commas between them.
fn numbers(text: &str) -> Result<Vec<u16>, OptionError> {
    let ports = text.split(',').map(str::trim).filter(|port| !port.is_empty());
    ports
        .map(|port| port.parse().map_err(|_| OptionError::Ports))
        .collect()
}

fn host(text: &str) -> Result<IpAddr, OptionError> {
    let bare = text.trim().trim_start_matches('[').trim_end_matches(']');
    bare.parse().map_err(|_| OptionError::Host(bare.to_owned()))
}

/// The wildcard address of both families, or of the one that this machine has.
fn any() -> IpAddr {
    match TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) {
        Ok(_) => Ipv6Addr::UNSPECIFIED.into(),
        Err(_) => Ipv4Addr::UNSPECIFIED.into(),
    }
}
