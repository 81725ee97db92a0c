//! Keys about TLS: of a listener, and of a pool.

use crate::config::{
    Diagnostic,
    document::Node,
    form::{Choice, Flag, Form, Optional, PathText, Shape, Text, Word},
    reading::Reading,
    schema::{ClientTls, Identity, ServerTls, Verify},
    section::section,
};

section! {
    /// TLS 1.2 and 1.3 with those who connect. The files are read again, as one set, when they change; what
    /// cannot be used changes nothing.
    pub(super) struct ServerTlsKeys {
        /// The certificate in PEM form, with those between it and its authority; relative to this file.
        certificate: PathText,
        /// Its private key in PEM form, relative to this file.
        key: PathText,
    }
}

/// TLS of the admin port.
#[derive(Debug)]
pub(super) struct ServerTlsForm;

impl Form for ServerTlsForm {
    type Value = ServerTls;

    fn shape() -> Shape {
        ServerTlsKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<ServerTls, Diagnostic> {
        let ServerTlsKeys { certificate, key } = ServerTlsKeys::read(node, cx)?;
        let identity = Identity { certificate, key };
        Ok(ServerTls { identity, ca: None })
    }
}

section! {
    /// TLS 1.2 and 1.3 with clients. The files are read again, as one set, when they change; what cannot be used
    /// changes nothing.
    pub(super) struct ListenerTlsKeys {
        /// The certificate in PEM form, with those between it and its authority; relative to this file. With
        /// `users: server` the process makes one for itself where none is named.
        certificate: Optional<PathText>,
        /// Its private key in PEM form, relative to this file.
        key: Optional<PathText>,
        /// Whether clients of MySQL that speak plainly are denied (3159). Clients of other protocols speak TLS from
        /// their first byte.
        required: Flag = false,
    }
}

/// TLS of a listener: with a certificate, or with one of its own, and whether clients must speak it.
#[derive(Debug)]
pub(super) struct ListenerTlsForm;

impl Form for ListenerTlsForm {
    type Value = (Option<ServerTls>, bool);

    fn shape() -> Shape {
        ListenerTlsKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<Self::Value, Diagnostic> {
        let keys = ListenerTlsKeys::read(node, cx)?;
        match (keys.certificate, keys.key) {
            (Some(certificate), Some(key)) => {
                let identity = Identity { certificate, key };
                Ok((Some(ServerTls { identity, ca: None }), keys.required))
            }
            (None, None) if keys.required => Ok((None, true)),
            _ => Err(cx
                .refuse(node.at, "`certificate` and `key` go together")
                .with_remedy("write both of them")),
        }
    }
}

section! {
    /// TLS 1.2 and 1.3 with servers; `tls: {}` is enough where this system trusts their authority. The files
    /// are read again, as one set, when they change; what cannot be used changes nothing.
    pub(super) struct ClientTlsKeys {
        /// The certificates of the authorities that may have signed those of servers, in PEM form, relative to
        /// this file. The default are those that this system trusts.
        ca: Optional<PathText>,
        /// The name that servers are asked for, and that their certificates must have. The default is the
        /// host in the address of each server; an IP address must stand in the certificate as one.
        name: Optional<Text>,
        /// The certificate that the proxy shows to servers, in PEM form, relative to this file.
        certificate: Optional<PathText>,
        /// Its private key in PEM form, relative to this file.
        key: Optional<PathText>,
        /// What a server's certificate has to prove.
        verify: Word<Verify> = Verify::Full,
    }
}

impl Choice for Verify {
    const WHAT: &'static str = "a way to verify servers";
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "full",
            Self::Full,
            "that an authority has signed it, and that it has the name",
        ),
        (
            "authority",
            Self::Authority,
            "that an authority has signed it, whatever its name",
        ),
        (
            "none",
            Self::None,
            "nothing: whoever answers is taken for the server",
        ),
    ];
}

/// TLS of a pool.
#[derive(Debug)]
pub(super) struct ClientTlsForm;

impl Form for ClientTlsForm {
    type Value = ClientTls;

    fn shape() -> Shape {
        ClientTlsKeys::shape()
    }

    fn read(node: &Node, cx: &mut Reading) -> Result<ClientTls, Diagnostic> {
        let keys = ClientTlsKeys::read(node, cx)?;
        let identity = match (keys.certificate, keys.key) {
            (Some(certificate), Some(key)) => Some(Identity { certificate, key }),
            (None, None) => None,
            _ => {
                return Err(cx
                    .refuse(node.at, "`certificate` and `key` go together")
                    .with_remedy("write both of them, or neither"));
            }
        };
        if keys.verify == Verify::None {
            let problem = "`verify: none`: whoever answers at a server's address is taken for the server, \
                           and reads and changes what is sent there";
            cx.warn(node.at, problem);
        }
        Ok(ClientTls {
            ca: keys.ca,
            name: keys.name,
            identity,
            verify: keys.verify,
        })
    }
}
