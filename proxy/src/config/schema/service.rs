//! Services of Kubernetes, whose endpoints are servers.

use std::{fmt, path::PathBuf};

/// A Service whose endpoints are the servers of a pool.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Service {
    /// Its name.
    pub name: String,
    /// Its namespace. `None`: that of the pod in which the proxy runs.
    pub namespace: Option<String>,
    /// The port of its endpoints.
    pub port: ServicePort,
    /// The file in which the last good list is kept. `None`: one in the folder for what the process keeps.
    pub keep: Option<PathBuf>,
}

/// The port of the endpoints of a Service.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ServicePort {
    /// The one that the Service has.
    Only,
    /// This one, whatever the Service says.
    Number(u16),
    /// The one with this name. Endpoints may have it at different numbers.
    Name(String),
}

/// As it stands in a configuration.
impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        if let Some(namespace) = &self.namespace {
            write!(f, ".{namespace}")?;
        }
        match &self.port {
            ServicePort::Only => Ok(()),
            ServicePort::Number(port) => write!(f, ":{port}"),
            ServicePort::Name(port) => write!(f, ":{port}"),
        }
    }
}
