//! `proxima fleet`: the fleet as a running proxy sees it, keys for its links, and the actions of an operator.

use std::{
    fmt::Write,
    fs, io,
    os::unix::fs::{MetadataExt, lchown},
    path::Path,
};

use hyper::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use tokio::runtime::Builder;

use super::{
    Answer,
    admin::{Admin, ask, get},
    args::Fleet,
};
use crate::{
    config,
    control::{FleetStatus, InitError, SecretError, init_directory, keep_keys, keep_token, make_keys},
};

/// Does what this command says.
pub(super) fn fleet(command: Fleet) -> Answer {
    match command {
        Fleet::Show { at, json } => match get(at, "/fleet") {
            Ok(text) if json => Answer::good(format!("{text}\n")),
            Ok(text) => match serde_json::from_str(&text) {
                Ok(status) => Answer::good(table(&status)),
                Err(error) => Answer::bad(1, format!("proxima: the answer cannot be read: {error}")),
            },
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        },
        Fleet::Remove { name, at } => {
            let name = utf8_percent_encode(&name, NON_ALPHANUMERIC);
            match ask(
                &Admin::of(at),
                Method::POST,
                &format!("/fleet/remove?peer={name}"),
            ) {
                Ok(text) => Answer::good(text),
                Err(error) => Answer::bad(1, format!("proxima: {error}")),
            }
        }
        Fleet::Keys {
            dir,
            names,
            secret,
            rotate,
            token_secret,
        } => match (dir, secret) {
            (Some(dir), _) => keys_in_folder(&dir, &names),
            (None, secret) => keys_in_secrets(secret.as_deref(), rotate, token_secret.as_deref()),
        },
        Fleet::Own { dir, user } => match own(&dir, user) {
            Ok(()) => Answer::good(String::new()),
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        },
        Fleet::Init { config, force } => init(&config, force),
    }
}

fn keys_in_folder(dir: &Path, names: &[String]) -> Answer {
    match make_keys(dir, names) {
        Ok(written) => {
            let written = written.iter().map(|path| format!("{}\n", path.display()));
            Answer::good(written.collect())
        }
        Err(error) => Answer::bad(1, format!("proxima: {error}")),
    }
}

fn keys_in_secrets(keys: Option<&str>, rotate: bool, token: Option<&str>) -> Answer {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return Answer::bad(1, format!("proxima: {error}")),
    };
    let mut told = String::new();
    let done = runtime.block_on(async {
        if let Some(name) = keys {
            let done = keep_keys(name, rotate).await?;
            let done = done.map_or("nothing is due".to_owned(), |done| done.to_string());
            told.push_str(&format!("{name}: {done}\n"));
        }
        if let Some(name) = token {
            let done = if keep_token(name).await? {
                "a token was made"
            } else {
                "its token stays"
            };
            told.push_str(&format!("{name}: {done}\n"));
        }
        Ok::<_, SecretError>(())
    });
    match done {
        Ok(()) => Answer::good(told),
        Err(error) => Answer::bad(1, format!("{told}proxima: {error}")),
    }
}

/// Gives a folder and what is in it to this user and group.
///
/// Invariant: what is in a folder is given before the folder, so that one which they own is done. The capability to
/// give does not let root look into a folder that is closed to others.
fn own(path: &Path, user: (u32, u32)) -> Result<(), String> {
    let told = |error: io::Error| format!("{}: {error}", path.display());
    let found = fs::symlink_metadata(path).map_err(told)?;
    if (found.uid(), found.gid()) == user {
        return Ok(());
    }
    if found.is_dir() {
        for entry in fs::read_dir(path).map_err(told)? {
            own(&entry.map_err(told)?.path(), user)?;
        }
    }
    lchown(path, Some(user.0), Some(user.1)).map_err(told)
}

fn init(file: &Path, force: bool) -> Answer {
    let loaded = match config::load(file) {
        Ok(loaded) => loaded,
        Err(error) => return Answer::bad(1, error.to_string()),
    };
    let Some(fleet) = loaded.config.fleet else {
        return Answer::bad(1, format!("proxima: {} has no `fleet`", file.display()));
    };
    match init_directory(&fleet.dir, force) {
        Ok(()) => Answer::good(format!("{} is that of a new peer\n", fleet.dir.display())),
        Err(error @ InitError::InUse(_)) => Answer::bad(2, format!("proxima: {error}")),
        Err(error) => Answer::bad(1, format!("proxima: {error}")),
    }
}

fn table(status: &FleetStatus) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{} of fleet {}: view {} ({}), term {}, leader {}, lease {:.1} s",
        status.name,
        status.fleet.as_deref().unwrap_or("(none yet)"),
        status.view,
        if status.why.is_empty() {
            "the first"
        } else {
            &status.why
        },
        status.term,
        status.leader.as_deref().unwrap_or("(none)"),
        status.lease_seconds,
    );
    if !status.waits_for.is_empty() {
        let _ = writeln!(out, "it has not joined: {}", status.waits_for);
    }
    for alert in &status.alerts {
        let _ = writeln!(out, "ALERT {alert}");
    }
    let voters: Vec<&str> = status.voters.keys().map(String::as_str).collect();
    let _ = writeln!(out, "voters: {}\n", voters.join(", "));
    let _ = writeln!(
        out,
        "{:<24} {:<22} {:>6} {:<8} {:<16} link",
        "peer", "address", "since", "decides", "copies"
    );
    for peer in &status.peers {
        let link = match (&peer.unreachable, peer.round_trip_ms) {
            (Some(why), _) => why.clone(),
            (None, Some(time)) => format!("{time:.1} ms"),
            (None, None) if peer.name == status.name => "this one".to_owned(),
            (None, None) => "unknown".to_owned(),
        };
        let complaints = match peer.complains_of.is_empty() {
            true => String::new(),
            false => format!("; it complains of {}", peer.complains_of.join(", ")),
        };
        let _ = writeln!(
            out,
            "{:<24} {:<22} {:>6} {:<8} {:<16} {link}{complaints}",
            peer.name,
            peer.address,
            peer.since_view,
            if peer.decides { "yes" } else { "no" },
            peer.copies.join(","),
        );
    }
    for name in &status.candidates {
        let _ = writeln!(out, "{name} wants to join");
    }
    for (name, why) in status.removed.iter().rev().take(8) {
        let _ = writeln!(out, "{name} left: {why}");
    }
    out
}
