//! TLS between the clients of a run and the contenders: one certificate, one version, one cipher for all.

use std::{
    fs,
    io::{self, Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use clap::ValueEnum;
use rustls::{
    CipherSuite, ClientConfig, ClientConnection, NamedGroup, RootCertStore, StreamOwned,
    SupportedProtocolVersion,
    client::Resumption,
    crypto::{CryptoProvider, aws_lc_rs::default_provider},
    pki_types::{CertificateDer, ServerName, pem::PemObject},
    version::{TLS12, TLS13},
};
use serde::{Deserialize, Serialize};

/// The name in the certificate.
const NAME: &str = "localhost";

/// Whether clients speak TLS, and which version.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Tls {
    /// They speak plainly
    #[default]
    #[value(name = "none")]
    #[serde(rename = "none")]
    None,
    /// TLS 1.2, ECDHE with X25519, AES-256-GCM
    #[value(name = "1.2")]
    #[serde(rename = "1.2")]
    V12,
    /// TLS 1.3, X25519, AES-256-GCM
    #[value(name = "1.3")]
    #[serde(rename = "1.3")]
    V13,
}

/// A certificate with its key, an ECDSA one, as files.
pub(crate) struct Pair {
    /// The certificate.
    pub(crate) certificate: PathBuf,
    /// Its key.
    pub(crate) key: PathBuf,
    /// Both of them.
    pub(crate) both: PathBuf,
}

impl Pair {
    /// Makes one in this folder.
    pub(crate) fn make(directory: &Path) -> Result<Self> {
        let made = rcgen::generate_simple_self_signed(vec![NAME.to_owned()])?;
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let write = |name: &str, text: &str| {
            let file = directory.join(name);
            fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
            Ok::<_, anyhow::Error>(file)
        };
        Ok(Self {
            both: write("tls.both", &format!("{certificate}{key}"))?,
            certificate: write("tls.crt", &certificate)?,
            key: write("tls.key", &key)?,
        })
    }
}

/// How clients connect by TLS.
#[derive(Clone)]
pub(crate) struct Connector(Arc<ClientConfig>);

impl Connector {
    /// Trusts this certificate alone. If `resumes`, a connection goes on with the session of an earlier one.
    pub(crate) fn new(tls: Tls, resumes: bool, pair: &Pair) -> Result<Option<Self>> {
        let (version, suite): (&'static SupportedProtocolVersion, _) = match tls {
            Tls::None => return Ok(None),
            Tls::V12 => (&TLS12, CipherSuite::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384),
            Tls::V13 => (&TLS13, CipherSuite::TLS13_AES_256_GCM_SHA384),
        };
        let mut provider: CryptoProvider = default_provider();
        provider.cipher_suites.retain(|known| known.suite() == suite);
        // In TLS 1.2 the curve of the certificate has to be among them; the first is taken.
        let groups: &[_] = match tls {
            Tls::V12 => &[NamedGroup::X25519, NamedGroup::secp256r1],
            Tls::None | Tls::V13 => &[NamedGroup::X25519],
        };
        provider.kx_groups.retain(|group| groups.contains(&group.name()));
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(&pair.certificate)?)?;
        let mut config = ClientConfig::builder_with_provider(Arc::new(provider))
            .with_protocol_versions(&[version])?
            .with_root_certificates(roots)
            .with_no_client_auth();
        if !resumes {
            config.resumption = Resumption::disabled();
        }
        Ok(Some(Self(Arc::new(config))))
    }

    /// Shakes hands over this connection.
    fn connect(&self, stream: TcpStream) -> Result<Stream> {
        let name = ServerName::try_from(NAME)?;
        let session = ClientConnection::new(Arc::clone(&self.0), name)?;
        let mut stream = StreamOwned::new(session, stream);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Stream::Tls(Box::new(stream)))
    }
}

/// A client's connection.
pub(crate) enum Stream {
    /// Without TLS.
    Plain(TcpStream),
    /// With it.
    Tls(Box<StreamOwned<ClientConnection, TcpStream>>),
}

impl Stream {
    /// Makes one of this connection, by TLS if there is a connector.
    pub(crate) fn new(stream: TcpStream, tls: Option<&Connector>) -> Result<Self> {
        match tls {
            None => Ok(Self::Plain(stream)),
            Some(tls) => tls.connect(stream),
        }
    }

    /// The socket alone, for those that speak plainly.
    pub(crate) fn into_socket(self) -> TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => stream.into_parts().1,
        }
    }

    /// Goes on by TLS, if there is a connector, over a connection that was plain.
    pub(crate) fn upgrade(&mut self, tls: Option<&Connector>) -> Result<()> {
        if let Some(tls) = tls {
            *self = tls.connect(self.socket().try_clone()?)?;
        }
        Ok(())
    }

    /// The socket.
    pub(crate) fn socket(&self) -> &TcpStream {
        match self {
            Self::Plain(stream) => stream,
            Self::Tls(stream) => &stream.sock,
        }
    }

    /// Says goodbye, if there is a word for it.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self {
            stream.conn.send_close_notify();
            stream.conn.write_tls(&mut stream.sock)?;
        }
        Ok(())
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.flush(),
            Self::Tls(stream) => stream.flush(),
        }
    }
}
