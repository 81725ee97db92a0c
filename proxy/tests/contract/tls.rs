//! TLS as a byte transform. One certificate, made anew in each run, is that of all listeners and servers.

use std::{
    io::{self, Read, Write},
    net::SocketAddr,
    sync::{Arc, LazyLock},
};

use proxima::protocol::{End, Transform};
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::PrivateKeyDer,
};

use crate::scramble::Secret;

/// The name of every listener.
pub(crate) const LISTENER: &str = "proxy.test";

struct Settings {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
    let names = vec![LISTENER.to_owned(), "*.server.test".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate.clone()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth();
    let client = ClientConfig::builder().with_root_certificates(trusted);
    Settings {
        server: Arc::new(server.with_single_cert(vec![certificate], key).unwrap()),
        client: Arc::new(client.with_no_client_auth()),
    }
});

/// The name of the server at this address.
fn name_of(address: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or_default();
    format!("port-{port}.server.test")
}

/// One end of a connection of the proxy.
pub(crate) fn tls(end: End<'_>) -> Box<dyn Transform> {
    Box::new(match end {
        End::Client { .. } => Tls::accepting(),
        End::Server { address, .. } => Tls::connecting(name_of(address)),
    })
}

/// As [`tls`], but servers are asked for a name that is not theirs.
pub(crate) fn misled(end: End<'_>) -> Box<dyn Transform> {
    match end {
        End::Client { .. } => tls(end),
        End::Server { .. } => Box::new(Tls::connecting("elsewhere.test".to_owned())),
    }
}

/// One side of a connection.
pub(crate) struct Tls(Connection);

impl Tls {
    pub(crate) fn accepting() -> Self {
        let begun = ServerConnection::new(Arc::clone(&SETTINGS.server));
        Self::unlimited(begun.unwrap().into())
    }

    /// The other side must prove that this is its name.
    pub(crate) fn connecting(name: String) -> Self {
        let name = name.try_into().unwrap();
        let begun = ClientConnection::new(Arc::clone(&SETTINGS.client), name);
        Self::unlimited(begun.unwrap().into())
    }

    /// The callers bound what they pass on, so the library needs no limit of its own.
    fn unlimited(mut connection: Connection) -> Self {
        connection.set_buffer_limit(None);
        Self(connection)
    }

    fn flush(&mut self, wire: &mut Vec<u8>) -> io::Result<()> {
        while self.0.wants_write() {
            self.0.write_tls(wire)?;
        }
        Ok(())
    }
}

impl Transform for Tls {
    fn open(&mut self, mut received: &[u8], plain: &mut Vec<u8>, wire: &mut Vec<u8>) -> io::Result<()> {
        while !received.is_empty() {
            self.0.read_tls(&mut received)?;
            let state = self.0.process_new_packets().map_err(io::Error::other)?;
            let begin = plain.len();
            plain.resize(begin + state.plaintext_bytes_to_read(), 0);
            self.0.reader().read_exact(&mut plain[begin..])?;
        }
        self.flush(wire)
    }

    fn seal(&mut self, plain: &[u8], wire: &mut Vec<u8>) -> io::Result<()> {
        self.0.writer().write_all(plain)?;
        self.flush(wire)
    }
}

impl Secret for Tls {
    fn names(&self, address: SocketAddr) -> bool {
        match &self.0 {
            Connection::Server(server) => server.server_name() == Some(&name_of(&address.to_string())),
            Connection::Client(_) => false,
        }
    }
}
