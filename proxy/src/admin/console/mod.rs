//! The console: a page for persons, out of files that are in the program.

mod files;

use axum::{
    extract::Path,
    http::{HeaderMap, HeaderName, StatusCode, header},
    response::{IntoResponse, Response},
};
use xxhash_rust::xxh3::xxh3_64;

use self::files::{FILES, INDEX};

/// What the page may do: run its own scripts and ask its own origin. Texts of clients cannot become anything else
/// than text, and no other page can frame it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      base-uri 'none'; frame-ancestors 'none'; form-action 'none'";

/// A file of the console.
struct File {
    /// Its path below `/console/`.
    path: &'static str,
    bytes: &'static [u8],
}

impl File {
    fn content_type(&self) -> &'static str {
        match self.path.rsplit_once('.') {
            Some((_, "js")) => "text/javascript; charset=utf-8",
            Some((_, "css")) => "text/css; charset=utf-8",
            _ => "text/html; charset=utf-8",
        }
    }

    /// Its tag is that of its bytes: another program has another page, and a browser keeps no old part of it.
    fn answer(&self, asked: &HeaderMap) -> Response {
        let tag = format!("\"{:016x}\"", xxh3_64(self.bytes));
        let known = asked
            .get(header::IF_NONE_MATCH)
            .and_then(|tags| tags.to_str().ok());
        let is_known = known.is_some_and(|tags| tags.split(',').any(|known| known.trim() == tag));
        let headers: [(HeaderName, &str); 6] = [
            (header::CONTENT_TYPE, self.content_type()),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::REFERRER_POLICY, "no-referrer"),
            (header::CACHE_CONTROL, "no-cache"),
            (header::ETAG, &tag),
        ];
        match is_known {
            true => (StatusCode::NOT_MODIFIED, headers).into_response(),
            false => (headers, self.bytes).into_response(),
        }
    }
}

/// The page for who takes HTML, as browsers do; all others get `text`.
pub(super) fn index(asked: &HeaderMap, text: &'static str) -> Response {
    let takes = asked.get(header::ACCEPT).and_then(|kinds| kinds.to_str().ok());
    // What is kept of one must not be given to who asks for the other.
    let vary = [(header::VARY, "accept")];
    match takes.is_some_and(|kinds| kinds.contains("text/html")) {
        true => (vary, INDEX.answer(asked)).into_response(),
        false => (vary, text).into_response(),
    }
}

/// A file below `/console/`.
pub(super) async fn file(Path(path): Path<String>, asked: HeaderMap) -> Response {
    match FILES.iter().find(|file| file.path == path) {
        Some(file) => file.answer(&asked),
        None => (StatusCode::NOT_FOUND, "the console has no such file\n").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use std::{
        collections::BTreeSet,
        fs,
        path::{Path, PathBuf},
    };

    use super::*;

    fn below(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => below(&path, found),
                false => found.push(path),
            }
        }
    }

    #[test]
    fn each_file_of_the_console_is_in_the_program() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("console");
        let mut found = Vec::new();
        below(&folder, &mut found);
        let names = found
            .iter()
            .map(|path| path.strip_prefix(&folder).unwrap().to_str().unwrap());
        // Types are for whoever writes it.
        let names: BTreeSet<&str> = names.filter(|name| !name.ends_with(".d.ts")).collect();
        let embedded: BTreeSet<&str> = FILES.iter().chain([&INDEX]).map(|file| file.path).collect();
        assert_eq!(embedded, names);
    }
}
