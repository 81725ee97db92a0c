//! What stands behind the `?` of an address: pairs that are known, or an answer that says which are.

use percent_encoding::percent_decode_str;

/// Pairs of a query, each name one of those that are known and there at most once.
pub(super) struct Query<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Query<'a> {
    /// Takes a query apart.
    ///
    /// # Errors
    /// In words: it has a name that is not known, or one twice.
    pub(super) fn parse(query: Option<&'a str>, known: &[&str]) -> Result<Self, String> {
        let mut pairs: Vec<(&str, &str)> = Vec::new();
        for pair in query
            .unwrap_or_default()
            .split('&')
            .filter(|pair| !pair.is_empty())
        {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if !known.contains(&name) {
                return Err(format!(
                    "there is no `{}` here; known are {}",
                    name.escape_debug(),
                    known.join(", ")
                ));
            }
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(format!("`{name}` is there twice"));
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

    /// A number.
    ///
    /// # Errors
    /// In words: it is none.
    pub(super) fn number(&self, name: &str) -> Result<Option<usize>, String> {
        let number = |text: String| {
            text.parse()
                .map_err(|_| format!("`{name}={}`: expected a number", text.escape_debug()))
        };
        self.text(name).map(number).transpose()
    }
}
