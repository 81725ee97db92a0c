//! Where the API server is, and what this process shows it: what every pod is given.

use std::{
    env, fs,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::ApiFailure;
use crate::config::schema::{ClientTls, Verify};

/// The files that a pod is given.
const FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The most bytes of one of them.
const LONGEST: u64 = 64 << 10;

/// How the API server is reached.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) host: String,
    pub(super) port: u16,
    folder: PathBuf,
}

impl Access {
    /// As the surroundings of this process have it.
    pub(super) fn of_pod() -> Result<Self, ApiFailure> {
        let host = env::var("KUBERNETES_SERVICE_HOST").map_err(|_| ApiFailure::NoPod)?;
        let port = env::var("KUBERNETES_SERVICE_PORT").ok();
        Ok(Self {
            host,
            port: port.and_then(|port| port.parse().ok()).unwrap_or(443),
            folder: FOLDER.into(),
        })
    }

    /// The token, as it is now: it is renewed every hour or so.
    pub(super) fn token(&self) -> Result<String, ApiFailure> {
        Ok(self.text("token")?.trim_end().to_owned())
    }

    /// The namespace of the pod.
    pub(super) fn namespace(&self) -> Result<String, ApiFailure> {
        Ok(self.text("namespace")?.trim_end().to_owned())
    }

    /// TLS with the API server, whose authority the pod is given. The file is followed.
    pub(super) fn tls(&self) -> ClientTls {
        ClientTls {
            ca: Some(self.folder.join("ca.crt")),
            name: None,
            identity: None,
            verify: Verify::Full,
        }
    }

    fn text(&self, name: &str) -> Result<String, ApiFailure> {
        read(&self.folder.join(name))
    }
}

/// The namespace of this pod.
///
/// # Errors
/// This process is in no pod.
pub(in crate::control) fn own_namespace() -> Result<String, ApiFailure> {
    Access::of_pod()?.namespace()
}

/// The address of the API server. `None`: this process is in no pod, or is told a name.
pub(in crate::control) fn api_address() -> Option<SocketAddr> {
    let access = Access::of_pod().ok()?;
    Some(SocketAddr::new(access.host.parse().ok()?, access.port))
}

fn read(path: &Path) -> Result<String, ApiFailure> {
    let refused = |why: String| ApiFailure::Account {
        path: path.display().to_string(),
        why,
    };
    let size = fs::metadata(path)
        .map_err(|error| refused(error.to_string()))?
        .len();
    match size {
        0 => Err(refused("it is empty".to_owned())),
        1..=LONGEST => fs::read_to_string(path).map_err(|error| refused(error.to_string())),
        _ => Err(refused("it is too long".to_owned())),
    }
}
