//! TLS at clients and servers. One certificate, made anew in each run, is that of all listeners and servers.

use std::{
    fs,
    io::{self, Read, Write},
    net::SocketAddr,
    path::Path,
    sync::{Arc, LazyLock},
};

use proxima::protocol::Transform;
use rustls::{
    ClientConfig, ClientConnection, Connection, RootCertStore, ServerConfig, ServerConnection,
    pki_types::PrivateKeyDer,
};

use crate::scramble::Secret;

/// The name of every listener.
pub(crate) const LISTENER: &str = "proxy.test";

struct Settings {
    /// The certificate and its key.
    files: [String; 2],
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

static SETTINGS: LazyLock<Settings> = LazyLock::new(|| {
    let names = vec![LISTENER.to_owned(), "*.server.test".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let text = [made.cert.pem(), made.signing_key.serialize_pem()];
    let files =
        ["contract.crt", "contract.key"].map(|name| Path::new(env!("CARGO_TARGET_TMPDIR")).join(name));
    for (file, text) in files.iter().zip(&text) {
        fs::write(file, text).unwrap();
    }
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut trusted = RootCertStore::empty();
    trusted.add(certificate.clone()).unwrap();
    let server = ServerConfig::builder().with_no_client_auth();
    let client = ClientConfig::builder().with_root_certificates(trusted);
    Settings {
        files: files.map(|file| file.display().to_string()),
        server: Arc::new(server.with_single_cert(vec![certificate], key).unwrap()),
        client: Arc::new(client.with_no_client_auth()),
    }
});

/// The name of the server at this address.
fn name_of(address: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or_default();
    format!("port-{port}.server.test")
}

/// What the configuration of a listener says, behind `tls:`.
pub(crate) fn listener() -> String {
    let [certificate, key] = &SETTINGS.files;
    format!("tls: {{certificate: {certificate}, key: {key}}}")
}

/// What the configuration of the pool of this server says.
pub(crate) fn pool(address: &str) -> String {
    pool_of(&name_of(address))
}

/// The same, where servers are asked for this name.
pub(crate) fn pool_of(name: &str) -> String {
    let [certificate, _] = &SETTINGS.files;
    format!("tls: {{ca: {certificate}, name: {name}}}")
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
