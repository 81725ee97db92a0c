//! The endpoints that are servers, as they are kept.

use std::{collections::HashMap, net::SocketAddr};

use super::{ServiceEndpoint, bad_answer::LIMIT};
use crate::config::schema::Server;

/// The endpoints of a Service that are servers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndpointList(Vec<ServiceEndpoint>);

/// A text is no list of endpoints.
#[derive(Debug, thiserror::Error)]
pub enum BadEndpointList {
    /// It is not what was written.
    #[error(transparent)]
    Text(#[from] serde_json::Error),
    /// More than any real Service has.
    #[error("more than {LIMIT} endpoints")]
    TooMany,
}

impl EndpointList {
    /// A list of these endpoints.
    pub fn new(endpoints: Vec<ServiceEndpoint>) -> Self {
        Self(endpoints)
    }

    /// The endpoints.
    pub fn endpoints(&self) -> &[ServiceEndpoint] {
        &self.0
    }

    /// The servers of a pool that they are.
    pub fn servers(&self) -> Vec<Server> {
        self.0.iter().map(ServiceEndpoint::server).collect()
    }

    /// Those of these addresses that DNS still tells, with what is known of them, and the others that it
    /// tells: nothing is known of those but the address.
    pub fn as_told_by_dns(&self, addresses: &[SocketAddr]) -> Self {
        let known: HashMap<_, _> = self.0.iter().map(|endpoint| (endpoint.at, endpoint)).collect();
        let told = addresses.iter().map(|&at| match known.get(&at) {
            Some(&endpoint) => endpoint.clone(),
            None => ServiceEndpoint {
                at,
                pod: None,
                node: None,
                zone: None,
                ends: false,
                is_away: false,
            },
        });
        let mut told: Vec<_> = told.collect();
        told.sort();
        told.dedup();
        Self(told)
    }

    /// Reads the text of a list.
    ///
    /// # Errors
    /// The text is none.
    pub fn parse(text: &[u8]) -> Result<Self, BadEndpointList> {
        let endpoints: Vec<ServiceEndpoint> = serde_json::from_slice(text)?;
        match endpoints.len() {
            0..=LIMIT => Ok(Self(endpoints)),
            _ => Err(BadEndpointList::TooMany),
        }
    }

    /// The text of the list.
    pub fn text(&self) -> String {
        serde_json::to_string(&self.0).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::members::endpoints::Pod;

    fn endpoint(number: u8) -> ServiceEndpoint {
        ServiceEndpoint {
            at: SocketAddr::from(([10, 0, 0, number], 1)),
            pod: Some(Pod {
                name: format!("p{number}"),
                uid: format!("u{number}"),
            }),
            node: Some("n1".into()),
            zone: None,
            ends: number == 2,
            is_away: number == 3,
        }
    }

    #[test]
    fn a_list_is_read_as_it_was_written_and_a_part_of_it_is_none() {
        let list = EndpointList::new(vec![endpoint(1), endpoint(2)]);
        let text = list.text();
        assert_eq!(EndpointList::parse(text.as_bytes()).unwrap(), list);
        for cut in 0..text.len() {
            assert!(EndpointList::parse(&text.as_bytes()[..cut]).is_err());
        }
    }

    #[test]
    fn what_dns_tells_keeps_what_is_known() {
        let list = EndpointList::new(vec![endpoint(1), endpoint(2)]);
        let at = |number| endpoint(number).at;
        let told = list.as_told_by_dns(&[at(3), at(1), at(1)]);
        let [one, three] = told.endpoints() else {
            panic!("{told:?}")
        };
        assert_eq!(one, &endpoint(1));
        assert_eq!((three.at, &three.pod), (at(3), &None));
    }
}
