//! Servers in a file: one server a line, `address [weight] [name] [zone=Z]`; `#` begins a comment.

use std::path::{Path, PathBuf};

use super::{
    SourceKey,
    listed::{is_name, repeated},
};
use crate::config::{
    BadAddress, ConfigError, Diagnostic, Place,
    document::shortened,
    file,
    form::{PathText, check_address},
    reading::Reading,
    schema::{Server, ServerSource, Source},
};

/// Servers in the file at this path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerFile(pub PathBuf);

impl SourceKey for ServerFile {
    const KEY: &'static str = "file";
    const ABOUT: &'static str = "A file with one server a line, followed by change: `address [weight] [name] [zone=Z]`, `#` begins a comment.";
    type Form = PathText;

    fn source(path: PathBuf, _pool: Place, _cx: &Reading) -> Result<Source, Diagnostic> {
        Ok(Source::new(Self(path)))
    }
}

impl ServerSource for ServerFile {
    fn read(&self) -> Result<Vec<Server>, ConfigError> {
        load(&self.0)
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn below(&self, folder: &Path) -> Option<Source> {
        Some(Source::new(Self(folder.join(&self.0))))
    }
}

/// Servers in one file at most.
const LIMIT: usize = 100_000;

/// Reads the file at `path`.
///
/// # Errors
/// The file cannot be read, a line is no server, or two servers have the same name. A file without any server
/// is refused as well: it is more likely half written than meant.
pub fn load(path: &Path) -> Result<Vec<Server>, ConfigError> {
    file::read(path)
        .map_err(|diagnostic| vec![diagnostic])
        .and_then(|text| parse(&text))
        .map_err(|diagnostics| ConfigError::all(path, diagnostics))
}

/// Parses the text of a file.
///
/// # Errors
/// Those of [`load`].
pub fn parse(text: &str) -> Result<Vec<Server>, Vec<Diagnostic>> {
    let (mut servers, mut mistakes) = (Vec::new(), Vec::new());
    for (i, line) in text.lines().enumerate() {
        let content = line.split_once('#').map_or(line, |(before, _)| before);
        if content.trim().is_empty() {
            continue;
        }
        let column = content.chars().take_while(|c| c.is_whitespace()).count() as u32 + 1;
        let at = Place {
            line: i as u32 + 1,
            column,
        };
        match server(content) {
            Ok(server) => servers.push((at, server)),
            Err(problem) => {
                mistakes.push(Diagnostic::at(at, problem.to_string()).with_remedy(LINE_REMEDY));
            }
        }
        if servers.len() + mistakes.len() > LIMIT {
            return Err(vec![Diagnostic::at(at, format!("more than {LIMIT} servers"))]);
        }
    }
    if let Some((at, problem)) = repeated(&servers) {
        mistakes.push(Diagnostic::at(at, problem).with_remedy("give each a name of its own"));
    }
    if !mistakes.is_empty() {
        mistakes.sort_by_key(|mistake| mistake.at);
        return Err(mistakes);
    }
    if servers.is_empty() {
        return Err(vec![
            Diagnostic::whole("names no server").with_remedy("write at least one `address`"),
        ]);
    }
    Ok(servers.into_iter().map(|(_, server)| server).collect())
}

const LINE_REMEDY: &str = "a line is `address [weight] [name] [zone=Z]`";

/// Why a line is no server. The operator has to correct it; the file is read again as soon as it changes.
#[derive(Debug, PartialEq, thiserror::Error)]
enum BadLine {
    #[error("`{0}` is no address ({1})")]
    Address(String, BadAddress),
    #[error("`{0}` is no zone")]
    Zone(String),
    #[error("the weight `{0}` is not above 0")]
    Weight(String),
    #[error("`{0}` is one word too many")]
    Word(String),
}

fn server(line: &str) -> Result<Server, BadLine> {
    let mut words = line.split_whitespace();
    let address = words.next().unwrap_or_default();
    check_address(address, false).map_err(|why| BadLine::Address(shortened(address), why))?;
    let mut server = Server {
        address: address.to_owned(),
        name: None,
        weight: 1.0,
        zone: None,
        pod: None,
    };
    for (i, word) in words.enumerate() {
        if let Some(zone) = word.strip_prefix("zone=") {
            server.zone = Some(zone.to_owned()).filter(|zone| !zone.is_empty() && is_name(zone));
            server
                .zone
                .as_ref()
                .ok_or_else(|| BadLine::Zone(shortened(word)))?;
        } else if let (0, Ok(weight)) = (i, word.parse::<f64>()) {
            if !weight.is_finite() || weight <= 0.0 {
                return Err(BadLine::Weight(shortened(word)));
            }
            server.weight = weight;
        } else if server.name.is_none() && is_name(word) {
            server.name = Some(word.to_owned());
        } else {
            return Err(BadLine::Word(shortened(word)));
        }
    }
    Ok(server)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_an_address_and_perhaps_weight_name_and_zone() {
        let text = "# ours\n10.0.0.1:11211\n\n  10.0.0.2:11211 2 b zone=eu-1a # old\n[::1]:1 0.5\nunix:/run/m c\nd:1 zone=x d\n";
        let server = |address: &str, weight, name: Option<&str>, zone: Option<&str>| Server {
            address: address.to_owned(),
            weight,
            name: name.map(str::to_owned),
            zone: zone.map(str::to_owned),
            pod: None,
        };
        let expected = [
            server("10.0.0.1:11211", 1.0, None, None),
            server("10.0.0.2:11211", 2.0, Some("b"), Some("eu-1a")),
            server("[::1]:1", 0.5, None, None),
            server("unix:/run/m", 1.0, Some("c"), None),
            server("d:1", 1.0, Some("d"), Some("x")),
        ];
        assert_eq!(parse(text), Ok(expected.to_vec()));
    }

    #[test]
    fn a_bad_line_is_refused_with_its_place() {
        let bad = [
            ("a:1\n b\n", "2:2: `b` is no address (there is no port)"),
            ("a:1 0", "1:1: the weight `0` is not above 0"),
            ("a:1 nan", "1:1: the weight `nan` is not above 0"),
            ("a:1 1 b c", "1:1: `c` is one word too many"),
            ("a:1 zone=", "1:1: `zone=` is no zone"),
            ("a:1 1 x/y", "1:1: `x/y` is one word too many"),
            ("a:1\nb:1 a:1", "2:1: the server `a:1` stood in line 1 already"),
            ("# nothing\n", "names no server"),
        ];
        for (text, message) in bad {
            let diagnostic = parse(text).unwrap_err()[0].to_string();
            assert!(diagnostic.starts_with(message), "{text:?}: {diagnostic}");
        }
    }
}
