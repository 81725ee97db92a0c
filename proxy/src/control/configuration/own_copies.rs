//! Which server of a listed pool is at this proxy's side, in a fleet. The others are at the sides of other
//! peers, so that one list serves all nodes.

use std::path::Path;

use crate::{
    config::{
        ConfigError, Diagnostic, Loaded, listen_socket,
        schema::{Fleet, Server, Source},
        source::Own,
    },
    control::surroundings::host,
    members::{Address, Distance, OwnLocation},
};

/// The configuration in which every listed pool of a fleet has its own server found.
///
/// # Errors
/// Several servers of a list are on this machine. The operator has to say which one is this peer's.
pub(in crate::control) fn with_own_copies(
    mut loaded: Loaded,
    here: &OwnLocation,
) -> Result<Loaded, ConfigError> {
    let Some(fleet) = &loaded.config.fleet else {
        return Ok(loaded);
    };
    let file = loaded.files_watched.first().map_or(Path::new("-"), |file| file);
    for (name, pool) in &mut loaded.config.pools {
        let (Some(_), Some(listed)) = (&pool.replicated, pool.source.fixed()) else {
            continue;
        };
        let own = match &near(listed, fleet, here)[..] {
            [] => {
                loaded.warnings.push(format!(
                    "none of the servers of pool `{name}` is on this machine: this peer has no copy of it. If one is, write \
                     `own: ADDRESS` in the place of the list, or say which address is this machine's with --node-address or HOST_IP"
                ));
                None
            }
            [only] => Some((*only).clone()),
            [one, other, ..] => {
                let (one, other) = (&one.address, &other.address);
                let problem =
                    format!("the servers {one} and {other} of pool `{name}` are both on this machine");
                return Err(ConfigError::one(
                    file,
                    Diagnostic::whole(problem)
                        .with_remedy("write `own: ADDRESS` with the one that is this peer's alone"),
                ));
            }
        };
        pool.source = Source::new(Own::of(own, listed));
    }
    Ok(loaded)
}

/// The servers at the address at which other peers reach this one; if there are none, those on this machine.
fn near<'a>(listed: &'a [Server], fleet: &Fleet, here: &OwnLocation) -> Vec<&'a Server> {
    let reached = fleet.announce.as_deref().unwrap_or(&fleet.listen);
    let reached = listen_socket(reached)
        .map(|at| at.ip())
        .filter(|ip| !ip.is_unspecified());
    let ip = |server: &Server| match Address::parse(&server.address) {
        Some(Address::Ip(at)) => Some(at.ip()),
        _ => None,
    };
    let at_its_address: Vec<&Server> = listed
        .iter()
        .filter(|server| reached.is_some() && ip(server) == reached)
        .collect();
    if !at_its_address.is_empty() {
        return at_its_address;
    }
    let names = host::names();
    let is_here = |server: &&Server| match Address::parse(&server.address) {
        Some(Address::Ip(at)) => here.distance(Some(at.ip()), None, None).0 <= Distance::Host,
        Some(Address::Host(host, _)) => names.iter().any(|name| name == host),
        Some(Address::Path(_)) => true,
        None => false,
    };
    listed.iter().filter(is_here).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;
    use crate::config::parse;

    fn own(servers: &str, fleet: &str, node: &str) -> Result<(Vec<String>, usize), String> {
        let text = format!(
            "listeners: [{{address: \"127.0.0.1:0\", route: cache}}]\n\
             pools: {{cache: {{servers: [{servers}], replicated: true}}}}\n\
             fleet: {{peers: [\"10.0.0.1:1\"], dir: d, tls: none, {fleet}}}\n"
        );
        let here = OwnLocation::new(&[node.parse().unwrap()], None);
        let loaded = parse(&text, Path::new("p.yaml")).unwrap();
        let found = with_own_copies(loaded, &here).map_err(|error| error.to_string())?;
        let pool = &found.config.pools["cache"];
        let own = pool.source.own().unwrap();
        let own = own.iter().map(|server| server.address.clone()).collect();
        assert_eq!(pool.source.listed_copies().len(), servers.split(',').count());
        Ok((own, found.warnings.len()))
    }

    #[test]
    fn listed_server_on_this_machine_is_the_own_copy() {
        let found = own(
            "\"10.0.0.1:11211\", \"10.0.0.2:11211\"",
            "listen: \"0.0.0.0:1\"",
            "10.0.0.2",
        );
        assert_eq!(found, Ok((vec!["10.0.0.2:11211".to_owned()], 0)));
    }

    #[test]
    fn server_at_the_address_of_the_peer_goes_before_others_on_the_machine() {
        let servers = "\"127.0.0.1:11211\", \"127.0.0.2:11211\"";
        let found = own(servers, "listen: \"127.0.0.2:1\"", "127.0.0.1");
        assert_eq!(found, Ok((vec!["127.0.0.2:11211".to_owned()], 0)));
    }

    #[test]
    fn peer_without_a_listed_server_has_no_copy_and_a_warning() {
        let found = own("\"10.0.0.1:11211\"", "listen: \"0.0.0.0:1\"", "10.0.0.9");
        assert_eq!(found, Ok((Vec::new(), 1)));
    }

    #[test]
    fn two_servers_on_one_machine_are_refused_with_a_remedy() {
        let refused = own(
            "\"10.0.0.1:1\", \"10.0.0.1:2\"",
            "listen: \"0.0.0.0:1\"",
            "10.0.0.1",
        );
        let text = refused.unwrap_err();
        assert!(text.contains("10.0.0.1:1 and 10.0.0.1:2"), "{text}");
        assert!(text.contains("`own: ADDRESS`"), "{text}");
    }
}
