//! A failed delete, and the line that keeps it: `["AS1.0", TIME, "C", ["HOST", PORT, "delete KEY\r\n"]]`, or the
//! second form `["AS2.0", TIME, "C", {"s": …, "f": …, "r": …, "h": "[HOST]:PORT", "p": POOL, "k": KEY}]`.

use std::{sync::Arc, time::SystemTime};

use serde_json::{Value, json};

use crate::config::schema::SpoolOptions;

/// The longest key: memcached's limit.
const LONGEST_KEY: usize = 250;

/// The address of a server: its host and port, or the path of its socket with port 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ServerName {
    pub(super) host: String,
    pub(super) port: u16,
}

/// A delete that a server has not taken.
#[derive(Clone, Debug)]
pub struct FailedDelete {
    /// The server's address, as in the configuration.
    pub server: String,
    /// The name of the pool in the file.
    pub pool: Arc<str>,
    /// The key.
    pub key: Vec<u8>,
}

impl ServerName {
    /// Takes `host:port`, `[v6]:port` and `unix:/path` apart. `None` for any other form.
    pub(super) fn parse(address: &str) -> Option<Self> {
        if let Some(path) = address.strip_prefix("unix:") {
            return Some(Self {
                host: path.to_owned(),
                port: 0,
            });
        }
        let (host, port) = address.rsplit_once(':')?;
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        Some(Self {
            host: bare.unwrap_or(host).to_owned(),
            port: port.parse().ok()?,
        })
    }
}

impl FailedDelete {
    /// Can a line keep it? Lines are JSON, which has no place for keys that are no text.
    pub(super) fn can_be_written(&self) -> bool {
        str::from_utf8(&self.key).is_ok_and(is_key) && ServerName::parse(&self.server).is_some()
    }

    /// Appends its line. Returns the server; `None` if the delete cannot be written as a line.
    pub(super) fn write(
        &self,
        options: &SpoolOptions,
        now: SystemTime,
        out: &mut Vec<u8>,
    ) -> Option<ServerName> {
        let (mut server, key) = (ServerName::parse(&self.server)?, str::from_utf8(&self.key).ok()?);
        // The path of a socket has no port.
        if let Some(port) = options.port.filter(|_| server.port > 0) {
            server.port = port;
        }
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let time = (since.as_secs_f64() * 1000.0).round() / 1000.0;
        let line = match options.is_second_form {
            false => json!([
                "AS1.0",
                time,
                "C",
                [server.host, server.port, format!("delete {key}\r\n")]
            ]),
            true => json!(["AS2.0", time, "C", {
                "s": "mcrouter",
                "f": options.router,
                "r": format!("/{}/{}/", options.region, options.cluster),
                "h": format!("[{}]:{}", server.host, server.port),
                "p": &*self.pool,
                "k": key,
            }]),
        };
        serde_json::to_writer(&mut *out, &line).ok()?;
        out.push(b'\n');
        Some(server)
    }
}

/// The server and the key of a line of either form. `None` if the line or its key is invalid.
pub(super) fn read(line: &[u8]) -> Option<(ServerName, String)> {
    let line: Value = serde_json::from_slice(line).ok()?;
    let (server, key) = match line.get(0)?.as_str()? {
        "AS1.0" => {
            let command = line.get(3)?;
            let port = u16::try_from(command.get(1)?.as_u64()?).ok()?;
            let host = command.get(0)?.as_str()?.to_owned();
            let key = command
                .get(2)?
                .as_str()?
                .strip_prefix("delete ")?
                .strip_suffix("\r\n")?;
            (ServerName { host, port }, key)
        }
        "AS2.0" => {
            let facts = line.get(3)?;
            let server = ServerName::parse(facts.get("h")?.as_str()?)?;
            (server, facts.get("k")?.as_str()?)
        }
        _ => return None,
    };
    // A file is written by others, too: nothing but a key may reach a server.
    is_key(key).then(|| (server, key.to_owned()))
}

fn is_key(key: &str) -> bool {
    (1..=LONGEST_KEY).contains(&key.len()) && key.bytes().all(|byte| byte > b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(is_second_form: bool) -> SpoolOptions {
        SpoolOptions {
            dir: "/".into(),
            is_second_form,
            port: None,
            router: "5000".into(),
            region: "east".into(),
            cluster: "c1".into(),
        }
    }

    #[test]
    fn a_line_has_either_of_mcrouters_forms_and_is_read_back() {
        let now = SystemTime::UNIX_EPOCH + std::time::Duration::from_millis(1_700_000_000_250);
        let cases = [
            (
                false,
                "10.0.0.1:11211",
                r#"["AS1.0",1700000000.25,"C",["10.0.0.1",11211,"delete a\"é\r\n"]]"#,
            ),
            (
                true,
                "[::1]:11211",
                r#"["AS2.0",1700000000.25,"C",{"f":"5000","h":"[::1]:11211","k":"a\"é","p":"A","r":"/east/c1/","s":"mcrouter"}]"#,
            ),
        ];
        for (second, server, expected) in cases {
            let delete = FailedDelete {
                server: server.into(),
                pool: "A".into(),
                key: "a\"é".into(),
            };
            let mut out = Vec::new();
            let name = delete.write(&options(second), now, &mut out).unwrap();
            assert_eq!(String::from_utf8(out.clone()).unwrap(), format!("{expected}\n"));
            assert_eq!(read(out.trim_ascii_end()), Some((name, "a\"é".into())));
        }
    }

    #[test]
    fn what_is_no_delete_of_a_key_is_not_read() {
        for line in [
            "",
            "[]",
            r#"["AS1.0",1,"C",["h",1,"flush_all\r\n"]]"#,
            r#"["AS1.0",1,"C",["h",1,"delete a\r\nflush_all\r\n"]]"#,
            r#"["AS1.0",1,"C",["h",1,"delete a b\r\n"]]"#,
            r#"["AS1.0",1,"C",["h",65536,"delete a\r\n"]]"#,
            r#"["AS2.0",1,"C",{"h":"[h]:1","k":""}]"#,
            r#"["AS2.0",1,"C",{"h":"h","k":"a"}]"#,
            r#"["AS3.0",1,"C",{"h":"[h]:1","k":"a"}]"#,
        ] {
            assert_eq!(read(line.as_bytes()), None, "{line}");
        }
    }

    #[test]
    fn a_key_that_is_no_text_cannot_be_written() {
        let delete = |key: &[u8]| FailedDelete {
            server: "h:1".into(),
            pool: "A".into(),
            key: key.into(),
        };
        assert!(delete(b"k").can_be_written());
        for key in [&b"\xff"[..], b"", b"a b", &[b'a'; 251]] {
            assert!(!delete(key).can_be_written(), "{key:?}");
        }
    }
}
