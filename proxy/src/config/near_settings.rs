//! The file of settings of the near cache that were kept at run time: read with the configuration, and
//! written by `proxima near set --keep`.

use std::{fmt::Write as _, fs, io, path::Path};

use super::{
    ConfigError, Diagnostic,
    document::{Name, Node, Place, Value},
    file,
    form::{Form, Share, Size, Time},
    reading::Reading,
    schema::{Config, NearKept, NearValues},
    yaml,
};

/// What the file begins with.
const HEAD: &str = "\
# Settings of the near cache that `proxima near … --keep` has kept. They stand in place of those of the
# configuration, and are read with it: at the start and at each reload.
";

/// Reads what was kept for this configuration.
///
/// # Errors
/// The file that it names cannot be read, or is refused.
pub(super) fn load(config: &mut Config) -> Result<(), ConfigError> {
    if let Some(path) = &config.near.settings {
        config.near.kept = read(path)?;
    }
    Ok(())
}

/// Warns of rules that the configuration no longer has.
pub(super) fn warnings(config: &Config) -> Vec<String> {
    let near = &config.near;
    let known = config.near_rules();
    let is_unknown = |name: &&String| !known.iter().any(|rule| rule.name == **name);
    let place = near.settings.as_deref().unwrap_or(Path::new("")).display();
    let unknown = near.kept.rules.keys().filter(is_unknown);
    unknown
        .map(|name| format!("{place}: settings were kept for the rule `{name}`, which does not exist"))
        .collect()
}

/// Reads the file at this path. A file that is not there keeps nothing.
///
/// # Errors
/// The file cannot be read, or is refused.
pub(crate) fn read(path: &Path) -> Result<NearKept, ConfigError> {
    if fs::symlink_metadata(path).is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        return Ok(NearKept::default());
    }
    let text = file::read(path).map_err(|diagnostic| ConfigError::one(path, diagnostic))?;
    parse(&text).map_err(|mistakes| ConfigError::all(path, mistakes))
}

fn parse(text: &str) -> Result<NearKept, Vec<Diagnostic>> {
    let is_empty = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    if text.lines().all(is_empty) {
        return Ok(NearKept::default());
    }
    let mut cx = Reading::default();
    let read = yaml::parse_near_settings(text, &mut cx);
    let mut mistakes = std::mem::take(&mut cx.mistakes);
    match read {
        Ok(kept) if mistakes.is_empty() => return Ok(kept),
        Ok(_) => {}
        Err(mistake) => mistakes.push(mistake),
    }
    mistakes.sort_by_key(|mistake| mistake.at);
    let remedy = "correct it, or delete the file: what was kept is lost then, and the configuration counts";
    for mistake in &mut mistakes {
        mistake.remedy.get_or_insert_with(|| remedy.to_owned());
    }
    Err(mistakes)
}

/// Writes the file whole or not at all, and not before it is on the disk.
///
/// # Errors
/// The folder cannot be written to.
pub(crate) fn write(path: &Path, kept: &NearKept) -> io::Result<()> {
    // A link stays one: what it leads to is replaced.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    file::replace(path, text(kept).as_bytes())
}

fn text(kept: &NearKept) -> String {
    let mut out = HEAD.to_owned();
    // Writing to a String cannot fail.
    if let Some(memory) = kept.memory {
        let _ = writeln!(out, "memory: {}", shown_size(memory));
    }
    if !kept.rules.is_empty() {
        out.push_str("rules:\n");
    }
    for (name, values) in &kept.rules {
        let values = shown(values).into_iter();
        let values: Vec<String> = values.map(|(name, value)| format!("{name}: {value}")).collect();
        let _ = writeln!(out, "  \"{name}\": {{{}}}", values.join(", "));
    }
    out
}

/// Settings by name, as one would write them.
pub(crate) fn shown(values: &NearValues) -> Vec<(&'static str, String)> {
    let time = |value: &Option<_>| value.as_ref().and_then(Time::show);
    let all = [
        ("ttl", time(&values.ttl)),
        ("stale", time(&values.stale)),
        ("stale_on_error", time(&values.stale_on_error)),
        ("negative", time(&values.negative)),
        ("largest", values.largest.as_ref().and_then(Size::show)),
        ("jitter", values.jitter.as_ref().and_then(Share::show)),
    ];
    let written = all.into_iter().filter_map(|(name, value)| Some((name, value?)));
    written.collect()
}

/// A size, as one would write it.
pub(crate) fn shown_size(bytes: usize) -> String {
    Size::show(&bytes).unwrap_or_default()
}

/// Parses settings of a rule as the configuration does. `pairs`: their names and values.
///
/// # Errors
/// The text says which one is wrong, and what would be right.
pub(crate) fn parse_values(pairs: &[(&str, &str)]) -> Result<NearValues, String> {
    let mut cx = Reading::default();
    let read = yaml::read_near_values(&map(pairs), &mut cx);
    unplaced(read, cx)
}

/// Parses a size as the configuration does.
///
/// # Errors
/// The text says what would be right.
pub(crate) fn parse_size(text: &str) -> Result<usize, String> {
    let mut cx = Reading::default();
    let read = cx.within("memory", |cx| Size::read(&scalar(text), cx));
    unplaced(read, cx)
}

/// What was read, or its mistakes without places, of which a command line has none.
fn unplaced<T>(read: Result<T, Diagnostic>, mut cx: Reading) -> Result<T, String> {
    let mut mistakes = std::mem::take(&mut cx.mistakes);
    match read {
        Ok(value) if mistakes.is_empty() => return Ok(value),
        Ok(_) => {}
        Err(mistake) => mistakes.push(mistake),
    }
    let texts: Vec<String> = mistakes
        .into_iter()
        .map(|mistake| Diagnostic { at: None, ..mistake }.to_string())
        .collect();
    Err(texts.join("; "))
}

const NOWHERE: Place = Place { line: 1, column: 1 };

fn scalar(text: &str) -> Node {
    Node {
        at: NOWHERE,
        value: Value::Scalar {
            text: text.to_owned(),
            quoted: true,
        },
    }
}

fn map(pairs: &[(&str, &str)]) -> Node {
    let entry = |(name, value): &(&str, &str)| {
        let name = Name {
            at: NOWHERE,
            text: (*name).to_owned(),
        };
        (name, scalar(value))
    };
    Node {
        at: NOWHERE,
        value: Value::Map(pairs.iter().map(entry).collect()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn kept() -> NearKept {
        let maps = parse_values(&[("ttl", "1500ms"), ("jitter", "0.25"), ("largest", "4MiB")]).unwrap();
        NearKept {
            memory: Some(512 << 20),
            rules: [("maps".to_owned(), maps)].into(),
        }
    }

    #[test]
    fn what_is_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("near.yaml");
        assert_eq!(read(&path).unwrap(), NearKept::default(), "there is none yet");
        for kept in [kept(), NearKept::default()] {
            write(&path, &kept).unwrap();
            assert_eq!(read(&path).unwrap(), kept);
        }
        assert_eq!(
            fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left beside it"
        );
    }

    #[test]
    fn a_damaged_file_is_refused_with_place_and_remedy() {
        for (text, told) in [
            ("memory: -1\n", "1:9: memory: expected a size above 0"),
            (
                "rules:\n  a: {ttl: 10}\n",
                "2:12: rules.a.ttl: expected a duration",
            ),
            ("rules: {a: {tll: 10s}}\n", "unknown key `tll`"),
            ("rules: [\n", "not YAML"),
        ] {
            let mistakes = parse(text).unwrap_err();
            let said: Vec<String> = mistakes.iter().map(Diagnostic::to_string).collect();
            assert!(said.iter().any(|said| said.contains(told)), "{text}: {said:?}");
            assert!(
                mistakes.iter().all(|mistake| mistake.remedy.is_some()),
                "{text}: {said:?}"
            );
        }
    }

    #[test]
    fn bad_values_are_refused_with_what_would_be_right() {
        for (pairs, told) in [
            ([("ttl", "ten")], "ttl: expected a duration"),
            ([("ttl", "-1s")], "ttl: expected a duration"),
            ([("jitter", "2")], "jitter: expected a number from 0 to 1"),
            ([("largest", "0")], "largest: expected a size above 0"),
            ([("tll", "1s")], "`ttl`"),
        ] {
            let said = parse_values(&pairs).unwrap_err();
            assert!(said.contains(told), "{pairs:?}: {said}");
        }
        assert!(
            parse_size("lots")
                .unwrap_err()
                .contains("memory: expected a size above 0")
        );
        assert_eq!(parse_values(&[("ttl", "0s")]).unwrap().ttl, Some(Duration::ZERO));
    }
}
