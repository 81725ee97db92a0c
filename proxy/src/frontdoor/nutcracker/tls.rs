//! TLS, which twemproxy does not have: options of ours enable it for pools and for their clients.

use crate::config::{
    document::Node,
    reading::{Kind, Reading},
    schema::{ClientTls, Config, Identity, Leaf, Route, ServerTls, Verify},
};

/// The values of one option: of a pool, or of all that have none of their own.
type Values<T> = Vec<(Option<String>, T)>;

/// The options about TLS.
#[derive(Clone, Debug, Default)]
pub(super) struct TlsFlags {
    certificate: Values<String>,
    key: Values<String>,
    server_ca: Values<String>,
    server_name: Values<String>,
    server_certificate: Values<String>,
    server_key: Values<String>,
    server_verify: Values<Verify>,
}

/// The word for the authorities that the system trusts.
const SYSTEM: &str = "system";

impl TlsFlags {
    /// Takes an option of this name. Returns `false` if that is not its value.
    pub(super) fn take(&mut self, name: &str, pool: Option<String>, value: &str) -> bool {
        let values = match name {
            "tls-certificate" => &mut self.certificate,
            "tls-key" => &mut self.key,
            "server-tls-ca" => &mut self.server_ca,
            "server-tls-name" => &mut self.server_name,
            "server-tls-certificate" => &mut self.server_certificate,
            "server-tls-key" => &mut self.server_key,
            "server-tls-verify" => {
                let verify = match value {
                    "full" => Verify::Full,
                    "authority" => Verify::Authority,
                    "none" => Verify::None,
                    _ => return false,
                };
                self.server_verify.push((pool, verify));
                return true;
            }
            _ => return true,
        };
        values.push((pool, value.to_owned()));
        !value.is_empty()
    }

    /// Gives the listeners and pools of a configuration their TLS. The checks look at the options as if they
    /// stood at the beginning of the file, `root`.
    pub(super) fn apply(&self, config: &mut Config, root: &Node, cx: &mut Reading) {
        self.mention(root, cx);
        for listener in &mut config.listeners {
            let Route::Leaf(Leaf::Pool(pool)) = &listener.route else {
                continue;
            };
            let identity = identity(&self.certificate, &self.key, pool);
            if self.is_half(identity.is_some(), [&self.certificate, &self.key], pool) {
                refuse(root, cx, "`--tls-certificate` and `--tls-key` go together");
            }
            listener.tls = identity.map(|identity| ServerTls { identity, ca: None });
        }
        for (name, pool) in &mut config.pools {
            pool.tls = self.with_servers(name, root, cx);
            if let Some(tls) = &pool.tls {
                pool.source = pool.source.behind(tls).unwrap_or_else(|| pool.source.clone());
            }
        }
    }

    /// TLS with the servers of this pool. Any of its options asks for it.
    fn with_servers(&self, pool: &str, root: &Node, cx: &mut Reading) -> Option<ClientTls> {
        let ca = of(&self.server_ca, pool);
        let name = of(&self.server_name, pool);
        let verify = of(&self.server_verify, pool);
        let identity = identity(&self.server_certificate, &self.server_key, pool);
        let both = [&self.server_certificate, &self.server_key];
        if self.is_half(identity.is_some(), both, pool) {
            refuse(
                root,
                cx,
                "`--server-tls-certificate` and `--server-tls-key` go together",
            );
        }
        if ca.is_none() && name.is_none() && verify.is_none() && identity.is_none() {
            return None;
        }
        let verify = verify.unwrap_or(Verify::Full);
        if verify == Verify::None {
            let problem =
                "`--server-tls-verify=none`: whoever answers at a server's address is taken for the server";
            cx.warn(root.at, problem);
        }
        Some(ClientTls {
            ca: ca.filter(|ca| ca != SYSTEM).map(Into::into),
            name,
            identity,
            verify,
        })
    }

    /// Is one of the two there, and not the other?
    fn is_half(&self, is_whole: bool, both: [&Values<String>; 2], pool: &str) -> bool {
        !is_whole && both.iter().any(|values| of(values, pool).is_some())
    }

    /// Has the checks look for the pools that are named.
    fn mention(&self, root: &Node, cx: &mut Reading) {
        let texts = [
            ("--tls-certificate", &self.certificate),
            ("--tls-key", &self.key),
            ("--server-tls-ca", &self.server_ca),
            ("--server-tls-name", &self.server_name),
            ("--server-tls-certificate", &self.server_certificate),
            ("--server-tls-key", &self.server_key),
        ];
        let texts = texts
            .iter()
            .flat_map(|(option, values)| values.iter().map(move |(pool, _)| (*option, pool)));
        let words = self.server_verify.iter();
        let words = words.map(|(pool, _)| ("--server-tls-verify", pool));
        for (option, pool) in texts.chain(words) {
            if let Some(pool) = pool {
                cx.within(option, |cx| cx.mention(root.at, Kind::Pool, pool));
            }
        }
    }
}

fn refuse(root: &Node, cx: &mut Reading, problem: &str) {
    let mistake = cx
        .refuse(root.at, problem)
        .with_remedy("give both of them, or neither");
    cx.mistakes.push(mistake);
}

/// The value for this pool: its own, or that of all.
fn of<T: Clone>(values: &Values<T>, pool: &str) -> Option<T> {
    let own = values.iter().rfind(|(of, _)| of.as_deref() == Some(pool));
    let all = values.iter().rfind(|(of, _)| of.is_none());
    own.or(all).map(|(_, value)| value.clone())
}

fn identity(certificates: &Values<String>, keys: &Values<String>, pool: &str) -> Option<Identity> {
    Some(Identity {
        certificate: of(certificates, pool)?.into(),
        key: of(keys, pool)?.into(),
    })
}
