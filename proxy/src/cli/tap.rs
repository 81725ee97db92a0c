//! `proxima tap`: requests of a running proxy, sampled while they are answered.

use std::io::{Write, stdout};

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::Value;

use super::{
    Answer,
    admin::{Admin, AskError, LongAnswer},
    args::Tap,
    plain::{json_line, plain},
    table::{moment, time},
};

/// The longest line of an answer, in bytes.
const MOST: usize = 1 << 20;

/// Why requests cannot be told.
#[derive(Debug, thiserror::Error)]
enum TapError {
    #[error("{0}")]
    Unanswered(#[from] AskError),
    #[error("the answer cannot be read: {0}")]
    Unreadable(#[from] serde_json::Error),
    #[error("the answer cannot be read: a line is longer than {} MiB", MOST >> 20)]
    TooLong,
}

/// Does what this command says.
pub(super) fn tap(command: Tap) -> Answer {
    match told(command) {
        Ok(()) => Answer::default(),
        Err(error) => Answer::bad(1, format!("proxima: {error}")),
    }
}

fn told(command: Tap) -> Result<(), TapError> {
    let path = path(&command);
    let admin = Admin::of(command.at);
    admin.runtime()?.block_on(async {
        let mut answer = LongAnswer::of(&admin, &path, None).await?;
        let (mut kept, mut left) = (Vec::new(), command.limit);
        while let Some(bytes) = answer.next().await? {
            kept.extend_from_slice(&bytes);
            while let Some(end) = kept.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = kept.drain(..=end).collect();
                let request: Value = serde_json::from_slice(&line)?;
                let text = if command.json {
                    json_line(&request)
                } else {
                    self::line(&request)
                };
                // A closed pipe is no failure.
                if stdout().write_all(text.as_bytes()).is_err() {
                    return Ok(());
                }
                left -= u64::from(request["skipped"].is_null());
                if left == 0 {
                    return Ok(());
                }
            }
            if kept.len() > MOST {
                return Err(TapError::TooLong);
            }
        }
        Ok(())
    })
}

fn path(command: &Tap) -> String {
    let wanted = [
        ("listener", command.listener.clone()),
        ("route", command.route.clone()),
        ("prefix", command.prefix.clone()),
        ("class", command.class.map(|class| class.name().to_owned())),
        ("slow", command.slow.clone()),
    ];
    let mut path = format!("/tap?limit={}", command.limit);
    for (name, value) in wanted {
        if let Some(value) = value {
            path += &format!("&{name}={}", utf8_percent_encode(&value, NON_ALPHANUMERIC));
        }
    }
    path
}

fn line(request: &Value) -> String {
    if let Some(skipped) = request["skipped"].as_u64() {
        return format!("(and {skipped} more than were told)\n");
    }
    let word = |name: &str| plain(request[name].as_str().unwrap_or("-"));
    let took = request["us"].as_f64().map(|us| time(us / 1e6));
    format!(
        "{} {} {} {} {} {}/{} {} {}\n",
        moment(request["at_ms"].as_u64().unwrap_or_default()),
        word("listener"),
        word("client"),
        word("command"),
        word("key"),
        word("pool"),
        word("member"),
        word("outcome"),
        took.unwrap_or_else(|| "-".to_owned()),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_a_line_whatever_is_in_it() {
        let request = json!({"at_ms": 1_795_000_000_000_u64, "listener": "127.0.0.1:11211",
                             "client": "10.0.0.9",
                             "command": "get", "key": "a\u{9b}31mb", "pool": "cache", "member": "a",
                             "outcome": "found", "us": 250.0});
        assert_eq!(
            line(&request),
            "2026-11-18T11:06:40.000Z 127.0.0.1:11211 10.0.0.9 get a\\xc2\\x9b31mb cache/a found 250 us\n"
        );
        assert_eq!(line(&json!({"skipped": 12})), "(and 12 more than were told)\n");
    }
}
