//! Bad configurations, each with the place and the words of its refusal.
//!
//! The files beside this one have entries of a configuration and, behind `=>`, the message. A line that
//! begins with two spaces continues the one before, and `\n` is the end of a line.

use crate::{around, refused, rows::each_row};

/// The entries of a file: configuration and message.
fn entries(text: &'static str) -> Vec<(String, String)> {
    let unfolded = text.replace("\n  ", " ");
    let of = |entry: &str| {
        let (config, message) = entry.split_once("\n=> ").expect("a configuration and a message");
        (config.replace("\\n", "\n"), message.trim().to_owned())
    };
    unfolded.split("\n\n").map(of).collect()
}

fn is_refused(text: &str, expected: &str) {
    let message = refused(text);
    let found = message.strip_prefix("<command line>:").unwrap_or_default();
    assert!(found.starts_with(expected), "{text}\n{message}\n{expected}");
}

#[test]
fn bad_routes_are_refused_with_place_and_reason() {
    let table = entries(include_str!("bad-routes.txt"));
    assert!(table.len() > 80);
    // The route begins in line 8, at column 18.
    each_row(table, |(route, expected)| is_refused(&around(route), expected));
}

#[test]
fn bad_files_are_refused_with_place_and_reason() {
    let table = entries(include_str!("bad-files.txt"));
    each_row(table, |(text, expected)| is_refused(text, expected));
}
