//! An HTTP origin of a near cache, and the URL by which a key is asked for.

use std::{fmt::Write, net::Ipv6Addr, str::FromStr, time::Duration};

/// An HTTP origin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearOrigin {
    /// Where a key is asked for.
    pub url: OriginUrl,
    /// The time for a whole fetch, waiting for its turn included.
    pub timeout: Duration,
    /// The most requests that are under way at once.
    pub requests: u32,
}

impl NearOrigin {
    /// The time for a fetch by default.
    pub const TIMEOUT: Duration = Duration::from_secs(1);
    /// The most requests at once by default.
    pub const REQUESTS: u32 = 64;
}

/// An `http` URL with a place for a key in its path or its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginUrl {
    /// The host as a name or an address; an IPv6 address without its brackets.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// The path and the query before the key. It begins with `/`.
    pub before: String,
    /// The path and the query behind the key.
    pub after: String,
}

/// Why a text is no URL of an origin. The operator has to correct it.
#[allow(missing_docs, reason = "the messages say it")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadOriginUrl {
    #[error("an origin is asked by plain HTTP: its URL begins with `http://`")]
    Scheme,
    #[error("the URL names a user, and an origin is asked without a login")]
    User,
    #[error("the URL has no `{{key}}`")]
    NoKey,
    #[error("the URL has `{{key}}` more than once")]
    SeveralKeys,
    #[error("`{{key}}` stands in the host or the port of the URL, where a client could choose the server")]
    KeyInHost,
    #[error("the URL has no host")]
    NoHost,
    #[error("the host of the URL is no name and no address")]
    BadHost,
    #[error("the port of the URL is not a number from 1 to 65535")]
    BadPort,
    #[error("the URL has a fragment, which no server sees")]
    Fragment,
    #[error("the URL has a character that must be written as `%` and two hexadecimal digits")]
    Character,
    #[error("the URL has a segment `.` or `..`, which not every server reads alike")]
    Dots,
}

impl BadOriginUrl {
    /// What is right.
    pub const fn remedy(self) -> &'static str {
        match self {
            Self::Scheme => "write `http://HOST:PORT/PATH/{key}`; for HTTPS name a proxy that speaks it",
            Self::User => "leave out what stands before `@`",
            Self::NoKey | Self::KeyInHost => {
                "write it in the path or the query: `http://HOST:PORT/PATH/{key}`"
            }
            Self::SeveralKeys => "leave one of them",
            Self::NoHost | Self::BadHost | Self::BadPort => "write `http://HOST:PORT/PATH/{key}`",
            Self::Fragment => "leave out `#` and what follows it",
            Self::Character => "write a space as `%20`",
            Self::Dots => "write the path as the server knows it",
        }
    }
}

/// The place of a key.
const KEY: &str = "{key}";
const PORT: u16 = 80;
/// The longest key that is asked for, in bytes: servers take no longer URLs.
const LONGEST_KEY: usize = 8 << 10;
/// The longest name of a host.
const LONGEST_HOST: usize = 253;

impl FromStr for OriginUrl {
    type Err = BadOriginUrl;

    fn from_str(text: &str) -> Result<Self, BadOriginUrl> {
        let scheme = text
            .get(..7)
            .filter(|scheme| scheme.eq_ignore_ascii_case("http://"));
        let rest = &text[scheme.ok_or(BadOriginUrl::Scheme)?.len()..];
        let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.contains('@') {
            return Err(BadOriginUrl::User);
        }
        if authority.contains(KEY) {
            return Err(BadOriginUrl::KeyInHost);
        }
        if rest.contains('#') {
            return Err(BadOriginUrl::Fragment);
        }
        let (before, after) = rest.split_once(KEY).ok_or(BadOriginUrl::NoKey)?;
        if after.contains(KEY) {
            return Err(BadOriginUrl::SeveralKeys);
        }
        let (host, port) = host_and_port(authority)?;
        let before = match before.starts_with('/') {
            true => before.to_owned(),
            false => format!("/{before}"),
        };
        if !is_written_right(&before) || !is_written_right(after) {
            return Err(BadOriginUrl::Character);
        }
        let url = Self {
            host,
            port,
            before,
            after: after.to_owned(),
        };
        let has_dots = url.path_around_key().any(|segment| is_dots(segment.as_bytes()));
        match has_dots {
            true => Err(BadOriginUrl::Dots),
            false => Ok(url),
        }
    }
}

impl OriginUrl {
    /// The path segments that do not have the key in them.
    fn path_around_key(&self) -> impl Iterator<Item = &str> {
        let path = |text: &'_ str| text.find('?').unwrap_or(text.len());
        let (before, after) = (
            &self.before[..path(&self.before)],
            &self.after[..path(&self.after)],
        );
        let is_key_in_path = before.len() == self.before.len();
        let (ahead, behind) = match is_key_in_path {
            true => (
                before.rsplit_once('/').map_or("", |(ahead, _)| ahead),
                after.split_once('/').map_or("", |(_, behind)| behind),
            ),
            false => (before, ""),
        };
        ahead.split('/').chain(behind.split('/'))
    }

    /// What a request for this key names: path and query, with the key escaped so that it stays in its
    /// segment or in its query. `None`: no URL can name the key there, because it is too long, or its
    /// segment would be `.` or `..`, escaped or not.
    pub fn target(&self, key: &[u8]) -> Option<String> {
        if key.len() > LONGEST_KEY {
            return None;
        }
        let mut target = String::with_capacity(self.before.len() + key.len() * 3 + self.after.len());
        target.push_str(&self.before);
        for &byte in key {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                    target.push(char::from(byte));
                }
                // Writing to a string does not fail.
                _ => drop(write!(target, "%{byte:02X}")),
            }
        }
        let end = target.len();
        target.push_str(&self.after);
        if self.before.contains('?') {
            return Some(target);
        }
        let begin = target[..self.before.len()].rfind('/').map_or(0, |at| at + 1);
        let end = target[end..].find(['/', '?']).map_or(target.len(), |at| end + at);
        (!is_dots(&target.as_bytes()[begin..end])).then_some(target)
    }

    /// The host and the port, as a request names them.
    pub fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        match (host.contains(':'), *port == PORT) {
            (false, true) => host.clone(),
            (false, false) => format!("{host}:{port}"),
            (true, true) => format!("[{host}]"),
            (true, false) => format!("[{host}]:{port}"),
        }
    }

    /// The URL for this key as operators may see it: the values in its query may be secrets, and are left
    /// out.
    pub fn shown(&self, key: &[u8]) -> Option<String> {
        let target = self.target(key)?;
        let (path, query) = match target.split_once('?') {
            None => return Some(format!("http://{}{target}", self.authority())),
            Some(parts) => parts,
        };
        let escaped = target.get(self.before.len()..target.len() - self.after.len());
        let shown = query.split('&').map(|part| match part.split_once('=') {
            Some((name, value)) if Some(value) != escaped => format!("{name}=…"),
            _ => part.to_owned(),
        });
        let query = shown.collect::<Vec<_>>().join("&");
        Some(format!("http://{}{path}?{query}", self.authority()))
    }
}

fn host_and_port(authority: &str) -> Result<(String, u16), BadOriginUrl> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or(BadOriginUrl::BadHost)?;
            host.parse::<Ipv6Addr>().map_err(|_| BadOriginUrl::BadHost)?;
            let port = match port {
                "" => None,
                port => Some(port.strip_prefix(':').ok_or(BadOriginUrl::BadHost)?),
            };
            (host, port)
        }
        None => {
            let (host, port) = match authority.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (authority, None),
            };
            let is_good = |byte: u8| byte.is_ascii_alphanumeric() || b".-_".contains(&byte);
            if host.is_empty() {
                return Err(BadOriginUrl::NoHost);
            }
            if host.len() > LONGEST_HOST || !host.bytes().all(is_good) {
                return Err(BadOriginUrl::BadHost);
            }
            (host, port)
        }
    };
    let port = match port {
        None => PORT,
        Some(port) => {
            let is_number = port.bytes().all(|byte| byte.is_ascii_digit());
            let port = port.parse().ok().filter(|&port| is_number && port > 0);
            port.ok_or(BadOriginUrl::BadPort)?
        }
    };
    Ok((host.to_owned(), port))
}

/// Has this part of a path and a query only characters that stand for themselves there?
fn is_written_right(text: &str) -> bool {
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        let is_right = match byte {
            b'%' => {
                let digits = (bytes.next(), bytes.next());
                let is_digit = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_hexdigit());
                is_digit(digits.0) && is_digit(digits.1)
            }
            byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(&byte),
        };
        if !is_right {
            return false;
        }
    }
    true
}

/// Do parsers of URLs take this segment for `.` or `..`? They do so where a dot is written as `%2e`, too.
fn is_dots(mut segment: &[u8]) -> bool {
    for _ in 0..2 {
        segment = match segment {
            [b'.', rest @ ..] | [b'%', b'2', b'e' | b'E', rest @ ..] => rest,
            _ => return false,
        };
        if segment.is_empty() {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::{BadOriginUrl, OriginUrl};

    fn url(text: &str) -> OriginUrl {
        text.parse().unwrap()
    }

    #[test]
    fn urls_of_origins() {
        for (text, host, port, before, after) in [
            ("http://a/{key}", "a", 80, "/", ""),
            ("HTTP://a.b-c:7000/x/{key}.json", "a.b-c", 7000, "/x/", ".json"),
            ("http://[::1]:8/{key}/v", "::1", 8, "/", "/v"),
            ("http://10.0.0.1?k={key}&x=1", "10.0.0.1", 80, "/?k=", "&x=1"),
            ("http://a/b?u=x@y&k={key}", "a", 80, "/b?u=x@y&k=", ""),
            ("http://a/b?p=../..&k={key}", "a", 80, "/b?p=../..&k=", ""),
        ] {
            let url = url(text);
            let OriginUrl {
                host: of,
                port: by,
                before: ahead,
                after: behind,
            } = &url;
            assert_eq!(
                (&**of, *by, &**ahead, &**behind),
                (host, port, before, after),
                "{text}"
            );
        }
        for (text, why) in [
            ("https://a/{key}", BadOriginUrl::Scheme),
            ("a/{key}", BadOriginUrl::Scheme),
            ("", BadOriginUrl::Scheme),
            ("http://u:p@a/{key}", BadOriginUrl::User),
            ("http://u@a/{key}", BadOriginUrl::User),
            ("http://{key}@a/{key}", BadOriginUrl::User),
            ("http://a/", BadOriginUrl::NoKey),
            ("http://a/{Key}", BadOriginUrl::NoKey),
            ("http://a/{key}/{key}", BadOriginUrl::SeveralKeys),
            ("http://{key}/", BadOriginUrl::KeyInHost),
            ("http://a{key}.b/{key}", BadOriginUrl::KeyInHost),
            ("http://a:{key}/", BadOriginUrl::KeyInHost),
            ("http:///{key}", BadOriginUrl::NoHost),
            ("http://:80/{key}", BadOriginUrl::NoHost),
            ("http://a b/{key}", BadOriginUrl::BadHost),
            ("http://[a]/{key}", BadOriginUrl::BadHost),
            ("http://[::1/{key}", BadOriginUrl::BadHost),
            ("http://[::1]80/{key}", BadOriginUrl::BadHost),
            ("http://a:/{key}", BadOriginUrl::BadPort),
            ("http://a:0/{key}", BadOriginUrl::BadPort),
            ("http://a:65536/{key}", BadOriginUrl::BadPort),
            ("http://a:+1/{key}", BadOriginUrl::BadPort),
            ("http://a/{key}#x", BadOriginUrl::Fragment),
            ("http://a/#{key}", BadOriginUrl::Fragment),
            ("http://a/x y/{key}", BadOriginUrl::Character),
            ("http://a/%4/{key}", BadOriginUrl::Character),
            ("http://a/é/{key}", BadOriginUrl::Character),
            ("http://a/{key}%", BadOriginUrl::Character),
            ("http://a\\b/{key}", BadOriginUrl::Character),
            ("http://a/../{key}", BadOriginUrl::Dots),
            ("http://a/./{key}", BadOriginUrl::Dots),
            ("http://a/{key}/%2e.", BadOriginUrl::Dots),
            ("http://a/..?k={key}", BadOriginUrl::Dots),
        ] {
            assert_eq!(text.parse::<OriginUrl>(), Err(why), "{text}");
        }
    }

    #[test]
    fn a_key_stays_in_its_segment_or_query() {
        let path = url("http://a:7000/maps/{key}");
        for (key, target) in [
            (&b"osd_map"[..], Some("/maps/osd_map")),
            (b"a/b", Some("/maps/a%2Fb")),
            (b"../x", Some("/maps/..%2Fx")),
            (b".", None),
            (b"..", None),
            (b"...", Some("/maps/...")),
            (b"%2e", Some("/maps/%252e")),
            (b"%2e%2e", Some("/maps/%252e%252e")),
            (b"", Some("/maps/")),
            (b"?x=1", Some("/maps/%3Fx%3D1")),
            (b"#f", Some("/maps/%23f")),
            (b"@b", Some("/maps/%40b")),
            (b"\\..\\", Some("/maps/%5C..%5C")),
            (b"\0\t\r\n \x7f\xff", Some("/maps/%00%09%0D%0A%20%7F%FF")),
            (b"{key}", Some("/maps/%7Bkey%7D")),
            ("é;&+=".as_bytes(), Some("/maps/%C3%A9%3B%26%2B%3D")),
        ] {
            assert_eq!(path.target(key).as_deref(), target, "{key:?}");
        }
        let around = url("http://a/.{key}");
        assert_eq!(around.target(b""), None);
        assert_eq!(around.target(b"."), None);
        assert_eq!(around.target(b".a").as_deref(), Some("/..a"));
        let around = url("http://a/%2E{key}?v");
        assert_eq!(around.target(b"."), None);
        assert_eq!(around.target(b"a").as_deref(), Some("/%2Ea?v"));
        let query = url("http://a/m?k={key}&token=s");
        assert_eq!(query.target(b"..").as_deref(), Some("/m?k=..&token=s"));
        assert_eq!(query.target(b"a&b=c").as_deref(), Some("/m?k=a%26b%3Dc&token=s"));
    }

    #[test]
    fn values_in_a_query_are_not_shown() {
        let query = url("http://a:1/m?token=secret&k={key}");
        assert_eq!(
            query.shown(b"x y").as_deref(),
            Some("http://a:1/m?token=…&k=x%20y")
        );
        let path = url("http://[::1]:1/m/{key}?t=secret");
        assert_eq!(path.shown(b"x").as_deref(), Some("http://[::1]:1/m/x?t=…"));
        assert_eq!(url("http://a/{key}").shown(b"..").as_deref(), None);
    }
}
