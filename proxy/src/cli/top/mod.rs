//! `proxima top`: what a running proxy does, second by second. It only reads.

mod draw;
mod layout;
mod overview;
mod report;
mod screen;
mod sheet;
mod sheets;
mod terminal;
mod values;

use std::{
    io::{Write, stdout},
    ops::ControlFlow,
};

use self::report::report;
use super::{
    Answer,
    admin::Admin,
    args::Top,
    plain::json_line,
    watch::{News, Watch, WatchError},
};

/// Does what this command says.
pub(super) fn top(command: Top) -> Answer {
    let has_colours = command.has_colours();
    let admin = Admin::of(command.at);
    match (command.once, command.json) {
        (false, false) => terminal::show(admin, has_colours),
        (once, json) => match printed(admin, once, json) {
            Ok(()) => Answer::default(),
            Err(error) => Answer::bad(1, format!("proxima: {error}")),
        },
    }
}

/// Prints one state, or each one.
fn printed(admin: Admin, once: bool, json: bool) -> Result<(), WatchError> {
    let address = admin.address().to_owned();
    let (mut events, mut is_first) = (Vec::new(), true);
    let mut told = |news: News<'_>| {
        let text = match news {
            // The first look at a proxy that nobody else watches knows no rates yet.
            News::State(document) if once && is_first && document["rates"]["requests"].is_null() => {
                is_first = false;
                return ControlFlow::Continue(());
            }
            News::State(document) if json => json_line(document),
            News::State(document) => report(document, &events, &address),
            News::Event(event) => {
                events.extend((!json).then_some(event));
                return ControlFlow::Continue(());
            }
            News::Lost(why) => {
                eprintln!("proxima: {why}");
                return ControlFlow::Continue(());
            }
        };
        // A closed pipe is no failure.
        match stdout().write_all(text.as_bytes()) {
            Ok(()) if !once => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    };
    admin
        .runtime()?
        .block_on(Watch::new(admin, !once).follow(&mut told))
}
