//! All slices of a Service.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{
    BadAnswer, Choice, ServiceEndpoint,
    bad_answer::LIMIT,
    event::Event,
    slice::{Family, Metadata, Service, Slice, SliceObject},
};
use crate::config::schema::ServicePort;

/// The slices of one Service, as a list and the watch behind it have left them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slices {
    service: String,
    slices: BTreeMap<String, Slice>,
    /// The version up to which all is known.
    version: String,
}

/// A list that comes page by page.
#[derive(Debug)]
pub struct Listing {
    slices: Slices,
}

#[derive(Deserialize)]
struct Page {
    kind: String,
    metadata: Metadata,
    #[serde(default)]
    items: Option<Vec<SliceObject>>,
}

impl Listing {
    /// The list of the slices of this Service, of which no page has come.
    pub fn of(service: &str) -> Self {
        Self {
            slices: Slices {
                service: service.to_owned(),
                slices: BTreeMap::new(),
                version: String::new(),
            },
        }
    }

    /// Takes a page. Returns the place from which the next one goes on; `None`: it was the last.
    ///
    /// # Errors
    /// The page is none of such a list.
    pub fn page(&mut self, bytes: &[u8]) -> Result<Option<String>, BadAnswer> {
        let bad = |error: serde_json::Error| BadAnswer::NoSlices(error.to_string());
        let page: Page = serde_json::from_slice(bytes).map_err(bad)?;
        if page.kind != "EndpointSliceList" {
            return Err(BadAnswer::NoSlices(format!("a `{}`", page.kind)));
        }
        for object in page.items.unwrap_or_default() {
            let name = object.metadata.name.clone();
            let slice = Slice::read(object, &self.slices.service)?;
            self.slices.slices.insert(name, slice);
        }
        self.slices.check()?;
        self.slices.version = page.metadata.resource_version;
        Ok(Some(page.metadata.more).filter(|more| !more.is_empty()))
    }

    /// The whole list, which takes the place of what was known.
    ///
    /// # Errors
    /// It is older than that.
    pub fn whole(self, known: Option<&Slices>) -> Result<Slices, BadAnswer> {
        let number = |version: &str| version.parse::<u64>().ok();
        let told = number(&self.slices.version);
        match known {
            // Versions are numbers that can be compared, and not more than that.
            Some(known) if told.is_some() && told < number(&known.version) => Err(BadAnswer::Older {
                told: self.slices.version,
                known: known.version.clone(),
            }),
            _ => Ok(self.slices),
        }
    }
}

impl Slices {
    /// The version up to which all is known, from which a watch goes on.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Takes a line of a watch. Returns whether the slices are others than before.
    ///
    /// # Errors
    /// The line is none of such a watch, or ends it; the slices are as before.
    pub fn hear(&mut self, line: &[u8]) -> Result<bool, BadAnswer> {
        let (event, version) = Event::read(line, &self.service)?;
        let is_new = match event {
            Event::Bookmark => false,
            Event::Gone(name) => self.slices.remove(&name).is_some(),
            Event::Is(name, slice) => {
                let before = self.slices.insert(name.clone(), slice);
                if let Err(refused) = self.check() {
                    match before {
                        Some(before) => self.slices.insert(name, before),
                        None => self.slices.remove(&name),
                    };
                    return Err(refused);
                }
                before.as_ref() != self.slices.get(&name)
            }
        };
        self.version = version;
        Ok(is_new)
    }

    /// The endpoints that are servers at this port.
    pub fn choose(&self, port: &ServicePort) -> Choice {
        let (found, without_port) = self.found(port);
        Choice::of(found, without_port)
    }

    /// All endpoints at this port, until they are gone.
    pub fn all(&self, port: &ServicePort) -> Choice {
        let (found, without_port) = self.found(port);
        Choice::of_all(found, without_port)
    }

    /// The endpoints at this port, and the number of those that lack it. Where there are slices of both families, those of IPv4
    /// count.
    fn found(&self, port: &ServicePort) -> (Vec<(Service, ServiceEndpoint)>, usize) {
        let has_four = self
            .slices
            .values()
            .any(|slice| slice.family == Family::Four && slice.len() > 0);
        let family = if has_four { Family::Four } else { Family::Six };
        let mut without_port = 0;
        let mut found = Vec::new();
        for slice in self.slices.values().filter(|slice| slice.family == family) {
            match slice.endpoints(port) {
                Some(endpoints) => found.extend(endpoints),
                None => without_port += slice.len(),
            }
        }
        (found, without_port)
    }

    fn check(&self) -> Result<(), BadAnswer> {
        match self.slices.values().map(Slice::len).sum::<usize>() {
            0..=LIMIT => Ok(()),
            _ => Err(BadAnswer::TooMany),
        }
    }
}
