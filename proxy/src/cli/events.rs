//! `proxima events`: changes of a running proxy's state, oldest first.

use std::{
    io::{Write, stdout},
    ops::ControlFlow,
};

use serde_json::Value;

use super::{
    Answer,
    admin::Admin,
    args::Events,
    plain::{json_line, plain},
    table::moment,
    watch::{News, Watch, WatchError},
};

/// Does what this command says.
pub(super) fn events(command: Events) -> Answer {
    match told(command) {
        Ok(()) => Answer::default(),
        Err(error) => Answer::bad(1, format!("proxima: {error}")),
    }
}

fn told(command: Events) -> Result<(), WatchError> {
    let Events {
        follow,
        kind,
        after,
        json,
        at,
    } = command;
    let mut tell = |news: News<'_>| {
        let event = match news {
            News::Event(event) => event,
            News::State(_) => return ControlFlow::Continue(()),
            News::Lost(why) => {
                eprintln!("proxima: {why}");
                return ControlFlow::Continue(());
            }
        };
        let line = if json { json_line(&event) } else { line(&event) };
        // A closed pipe is no failure.
        match stdout().write_all(line.as_bytes()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    };
    let admin = Admin::of(at);
    admin.runtime()?.block_on(async {
        let mut watch = Watch::new(admin, false).of_events(after, kind);
        match follow {
            true => watch.follow(tell).await,
            false => watch.events(&mut tell).await.map(drop),
        }
    })
}

/// The number is what `--after` takes.
fn line(event: &Value) -> String {
    let word = |name: &str| plain(event[name].as_str().unwrap_or("-"));
    format!(
        "{} {} {} {} {}\n",
        moment(event["at_ms"].as_u64().unwrap_or_default()),
        event["seq"].as_u64().unwrap_or_default(),
        word("level"),
        word("kind"),
        word("text"),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_event_is_a_line_whatever_is_in_it() {
        let event = json!({"seq": 7, "at_ms": 1_795_000_000_000_u64, "level": "warn", "kind": "ejected",
                           "text": "ejected member=\u{1b}[2J\n2026 forged"});
        assert_eq!(
            line(&event),
            "2026-11-18T11:06:40.000Z 7 warn ejected ejected member=\\x1b[2J\\x0a2026 forged\n"
        );
        assert_eq!(line(&json!({})), "1970-01-01T00:00:00.000Z 0 - - -\n");
    }
}
