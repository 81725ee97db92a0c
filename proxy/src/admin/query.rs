//! Queries: known pairs, or an error that lists them.

use std::net::IpAddr;

use percent_encoding::percent_decode_str;

use crate::route::ExplainError;

/// Why a query is refused. The client has to ask otherwise.
#[derive(Debug, thiserror::Error)]
pub(super) enum BadQuery {
    #[error("there is no `{name}` here; known are {known}")]
    UnknownName { name: String, known: String },
    #[error("`{0}` is there twice")]
    Twice(String),
    #[error("`{name}={value}`: expected a number")]
    NoNumber { name: String, value: String },
    #[error("`{name}={value}`: expected an IP address")]
    NoAddress { name: String, value: String },
    #[error("`{name}={value}`: expected 1 or 0")]
    NoFlag { name: String, value: String },
    #[error("which key? /explain?key=K, or /explain?sql=TEXT")]
    NoKey,
    #[error(transparent)]
    Explain(#[from] ExplainError),
}

/// The pairs of a query. Each name is known and stands there at most once.
pub(super) struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    /// Parses a query.
    ///
    /// # Errors
    /// It has an unknown name, or one twice.
    pub(super) fn parse(query: Option<&'a str>, known: &[&str]) -> Result<Self, BadQuery> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for pair in query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                return Err(BadQuery::UnknownName {
                    name: name.escape_debug().to_string(),
                    known: known.join(", "),
                });
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(BadQuery::Twice(name.to_owned()));
            }
            pairs.push((name, value));
        }
        Ok(Self(pairs))
    }

    /// The bytes of a value, which need not be text.
    pub(super) fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let (_, value) = self.0.iter().find(|(other, _)| *other == name)?;
        Some(percent_decode_str(&value.replace('+', " ")).collect())
    }

    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.bytes(name)
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
    }

    /// An IP address.
    ///
    /// # Errors
    /// It is none.
    pub(super) fn address(&self, name: &str) -> Result<Option<IpAddr>, BadQuery> {
        let address = |text: String| {
            text.parse().map_err(|_| BadQuery::NoAddress {
                name: name.to_owned(),
                value: text.escape_debug().to_string(),
            })
        };
        self.text(name).map(address).transpose()
    }

    /// Is this asked for? Its value is 1 or 0; alone it is asked for.
    ///
    /// # Errors
    /// The value is another one.
    pub(super) fn flag(&self, name: &str) -> Result<bool, BadQuery> {
        match self.text(name).as_deref() {
            None | Some("0") => Ok(false),
            Some("" | "1") => Ok(true),
            Some(value) => Err(BadQuery::NoFlag {
                name: name.to_owned(),
                value: value.escape_debug().to_string(),
            }),
        }
    }

    /// A number.
    ///
    /// # Errors
    /// The value is no number.
    pub(super) fn number(&self, name: &str) -> Result<Option<usize>, BadQuery> {
        let number = |text: String| {
            text.parse().map_err(|_| BadQuery::NoNumber {
                name: name.to_owned(),
                value: text.escape_debug().to_string(),
            })
        };
        self.text(name).map(number).transpose()
    }
}
