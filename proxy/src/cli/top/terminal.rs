//! The terminal of `proxima top`: keys, signals and news come to one loop, which draws.

use std::{
    io::{self, IsTerminal, stdout},
    ops::ControlFlow,
    sync::mpsc::{Receiver, SyncSender, sync_channel},
    thread,
};

use ratatui::{
    Terminal,
    backend::CrosstermBackend,
    crossterm::event::{self, Event},
};
use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::{draw::draw, screen::Screen};
use crate::cli::{
    Answer,
    admin::Admin,
    watch::{News, Watch, WatchError},
};

/// Inputs that may wait for the screen.
const WAITING: usize = 256;

enum Input {
    Terminal(Event),
    State(Value),
    Event(Value),
    Lost(String),
    /// The end, and the error that it is for.
    End(Option<String>),
}

/// Shows the proxy until the user, a signal or the terminal ends it.
pub(super) fn show(admin: Admin, has_colours: bool) -> Answer {
    if !stdout().is_terminal() {
        return Answer::bad(
            1,
            "proxima: standard output is no terminal; `proxima top --once` prints one state as text, and \
             `proxima top --json` all as JSON",
        );
    }
    let mut screen = Screen::new(admin.address().to_owned(), has_colours);
    let (sender, inputs) = sync_channel(WAITING);
    let told = Teller(sender.clone());
    let watching = thread::Builder::new().spawn(move || watch(admin, &told));
    if let Err(error) = watching {
        return Answer::bad(1, format!("proxima: {error}"));
    }
    // An error of the first answer is printed as that of any command.
    while screen.known().document.is_null() {
        match inputs.recv().map(|input| take(&mut screen, input)) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(Some(error))) => return Answer::bad(1, format!("proxima: {error}")),
            Ok(ControlFlow::Break(None)) | Err(_) => return Answer::default(),
        }
    }
    let shown = shown(&mut screen, sender, &inputs);
    match shown {
        Ok(None) => Answer::default(),
        Ok(Some(error)) => Answer::bad(1, format!("proxima: {error}")),
        Err(error) => Answer::bad(1, format!("proxima: the terminal: {error}")),
    }
}

/// Gives the terminal back as it was, whatever happens.
struct Restore;

impl Drop for Restore {
    fn drop(&mut self) {
        // A terminal that has gone needs nothing.
        let _ = ratatui::try_restore();
    }
}

fn shown(
    screen: &mut Screen,
    sender: SyncSender<Input>,
    inputs: &Receiver<Input>,
) -> io::Result<Option<String>> {
    let restore = Restore;
    let mut terminal: Terminal<CrosstermBackend<_>> = ratatui::try_init()?;
    thread::Builder::new().spawn(move || keys(&Teller(sender)))?;
    let ended = loop {
        terminal.draw(|frame| draw(frame, screen))?;
        let Ok(first) = inputs.recv() else { break None };
        // What has come meanwhile is drawn together.
        let mut all = std::iter::once(first).chain(inputs.try_iter());
        if let ControlFlow::Break(error) = all.try_for_each(|input| take(screen, input)) {
            break error;
        }
    };
    drop(terminal);
    drop(restore);
    Ok(ended)
}

fn take(screen: &mut Screen, input: Input) -> ControlFlow<Option<String>> {
    match input {
        Input::Terminal(Event::Key(key)) => {
            if screen.press(key).is_break() {
                return ControlFlow::Break(None);
            }
        }
        // A new size is seen by the next drawing.
        Input::Terminal(_) => {}
        Input::State(document) => screen.take_state(document),
        Input::Event(event) => screen.take_event(event),
        Input::Lost(why) => screen.lose(&why),
        Input::End(error) => return ControlFlow::Break(error),
    }
    ControlFlow::Continue(())
}

/// What tells the loop something from another thread, whose end is the end of all.
struct Teller(SyncSender<Input>);

impl Teller {
    fn tell(&self, input: Input) -> ControlFlow<()> {
        match self.0.send(input) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        let _ = self.0.send(Input::End(None));
    }
}

fn keys(teller: &Teller) {
    while let Ok(event) = event::read() {
        if teller.tell(Input::Terminal(event)).is_break() {
            return;
        }
    }
}

fn watch(admin: Admin, teller: &Teller) {
    let watched: Result<(), WatchError> = admin.runtime().map_err(WatchError::from).and_then(|runtime| {
        runtime.block_on(async {
            let watch = Watch::new(admin, true);
            let told = watch.follow(|news| {
                teller.tell(match news {
                    News::State(document) => Input::State(document.clone()),
                    News::Event(event) => Input::Event(event),
                    News::Lost(why) => Input::Lost(why.to_string()),
                })
            });
            tokio::select! {
                watched = told => watched,
                // A terminal that is left raw is of no use to anyone.
                () = told_to_end() => Ok(()),
            }
        })
    });
    let error = watched.err().map(|error| error.to_string());
    let _ = teller.tell(Input::End(error));
}

/// Ends with the first signal that asks the process to.
async fn told_to_end() {
    let kinds = [
        SignalKind::hangup(),
        SignalKind::interrupt(),
        SignalKind::quit(),
        SignalKind::terminate(),
    ];
    let [Ok(mut hangup), Ok(mut interrupt), Ok(mut quit), Ok(mut terminate)] = kinds.map(signal) else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = hangup.recv() => {}
        _ = interrupt.recv() => {}
        _ = quit.recv() => {}
        _ = terminate.recv() => {}
    }
}
