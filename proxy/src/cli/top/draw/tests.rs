use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    style::Color,
};
use serde_json::json;

use super::*;

/// A text of a client or server who means no good: escapes of a terminal, and a wide character.
const HOSTILE: &str = "\u{1b}[2J\u{9b}31m\u{202e}鍵\u{7}";

fn member(state: &str, rate: f64) -> Value {
    json!({"pool": "cache", "name": format!("m{rate}"), "state": state, "rate": rate, "errors": 0.0,
           "lanes": 2, "waiting": 0, "mean_us": 210.0, "address": "10.0.0.1:11211", "distance": "same_node"})
}

fn document() -> Value {
    let latency = json!({"10s": {"p50_us": 200.0, "p99_us": 750.0, "p999_us": 2200.0, "mean_us": 250.0}});
    let mut out = member("ejected", 2.0);
    out["why"] = json!(format!("no answer for 400 ms {HOSTILE}"));
    out["since_ms"] = json!(1_795_000_000_000_u64);
    json!({
        "process": {"program": "0.1.0", "host": "n1", "started_ms": 1_795_000_000_000_u64,
                    "now_ms": 1_795_000_060_000_u64, "io": "epoll", "workers": 2, "cores": 0.31,
                    "rss_bytes": 50 << 20, "descriptors": {"open": 41, "most": 1024}},
        "health": {"state": "serving", "sentence": "serving; 1 of 3 servers of `cache` is out"},
        "configuration": {"version": "ab12", "changed_ms": 1_795_000_000_000_u64, "reloads": 3},
        "rates": {"requests": 1234.5, "hits": 98.0, "misses": 2.0, "errors": 0.0, "client_bytes_in": 2048.0,
                  "client_bytes_out": 4096.0, "server_requests": 200.0, "accepted": 1.5},
        "clients": {"open": 41, "most": 1000},
        "latency": latency,
        "listeners": {"127.0.0.1:11211": {"protocol": "memcached", "clients": 41, "rate": 1234.5,
                                          "errors": 0.0, "latency": latency}},
        "pools": {"cache": {"protocol": "memcached", "up": 2, "members": 3, "rate": 200.0,
                            "latency": latency}},
        "members": {"cache/a": member("up", 1.0), "cache/b": out, "cache/c": member("up", 3.0)},
        "hot_keys": {"cache": [{"key": HOSTILE, "rate": 300.0, "share": 0.21}]},
        "history": {"requests": [null, 0.0, 50.0, 100.0], "p99_us": [null, 100.0, 750.0, 200.0]},
    })
}

fn screen() -> Screen {
    let mut screen = Screen::new("127.0.0.1:9150".to_owned(), true);
    screen.take_state(document());
    for seq in 1..=20 {
        screen.take_event(
            json!({"seq": seq, "at_ms": 1_795_000_000_000_u64 + seq, "level": "warn",
                                 "kind": "ejected", "subject": "cache/b", "before": "up", "after": "ejected",
                                 "why": format!("reason {seq}"), "text": HOSTILE}),
        );
    }
    screen
}

fn press(screen: &mut Screen, keys: &str) {
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\u{8}' => KeyCode::Backspace,
            '\u{1b}' => KeyCode::Esc,
            '>' => KeyCode::Right,
            'v' => KeyCode::Down,
            key => KeyCode::Char(key),
        };
        assert!(
            screen
                .press(KeyEvent::new(code, KeyModifiers::NONE))
                .is_continue()
        );
    }
}

fn drawn(screen: &Screen, width: u16, height: u16) -> Terminal<TestBackend> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, screen)).unwrap();
    terminal
}

/// The lines of the screen, without spaces at their ends.
fn lines(screen: &Screen, width: u16, height: u16) -> Vec<String> {
    let terminal = drawn(screen, width, height);
    let cells = terminal.backend().buffer().content();
    let rows = cells.chunks(usize::from(width));
    let text = |row: &[ratatui::buffer::Cell]| -> String { row.iter().map(|cell| cell.symbol()).collect() };
    rows.map(|row| text(row).trim_end().to_owned()).collect()
}

/// The first cells of the rows of the view's table.
fn names(screen: &Screen) -> Vec<String> {
    let lines = lines(screen, 80, 24);
    let rows = lines[3..].iter().take_while(|line| !line.is_empty());
    rows.map(|row| row.split_whitespace().next().unwrap().to_owned())
        .collect()
}

#[test]
fn overview_says_on_eighty_columns_how_the_proxy_is() {
    assert_eq!(
        lines(&screen(), 80, 24)[..18],
        [
            "proxima 0.1.0 at 127.0.0.1:9150 on n1, up 60.0 s",
            "[1 overview] 2 servers  3 pools  4 hot keys  5 events",
            " health        serving; 1 of 3 servers of `cache` is out",
            " requests      1234/s, 98.0 % hits, 0 errors/s",
            " traffic       2.0 KiB/s from and 4.0 KiB/s to clients, 200 requests/s to",
            "               servers",
            " latency 10 s  p50 200 us, p99 750 us, p99.9 2.2 ms, mean 250 us",
            " latency 1 min p50 -, p99 -, p99.9 -, mean -",
            " clients       41 of 1000, 1.5 accepted/s",
            " memory        50.0 MiB",
            " descriptors   41 of 1024",
            " processors    0.31 in use, 2 workers, epoll",
            " configuration version ab12 since 11:06:40 UTC, 3 reloads",
            "requests/s, at most 100                  p99, at most 750 us",
            "   █                                       █",
            "  ▄█                                       █",
            "  ██                                      ▃█▆",
            " UTC      level kind    subject change       why",
        ]
    );
}

#[test]
fn servers_are_sorted_filtered_and_explained() {
    let mut screen = screen();
    press(&mut screen, "2");
    assert_eq!(names(&screen), [">m2", "m1", "m3"], "what is out stands above");
    let text = lines(&screen, 80, 24).join("\n");
    assert!(
        text.contains("cache m2: ejected for 60.0 s; no answer for 400 ms"),
        "{text}"
    );
    press(&mut screen, ">r");
    assert_eq!(names(&screen), [">m3", "!m2", "m1"]);
    press(&mut screen, "/EJEC\u{8}");
    assert!(
        lines(&screen, 80, 24)
            .last()
            .unwrap()
            .contains("show only rows with: EJE_")
    );
    press(&mut screen, "\n");
    assert_eq!(names(&screen), [">m2"]);
    press(&mut screen, "\u{1b}vv");
    assert_eq!(names(&screen), ["m3", "!m2", ">m1"]);
}

#[test]
fn a_paused_screen_stays_and_then_shows_the_latest() {
    let mut screen = screen();
    press(&mut screen, " ");
    let mut document = document();
    document["rates"]["requests"] = json!(7.0);
    screen.take_state(document);
    let before = lines(&screen, 80, 24);
    assert!(
        before[3].contains("1234/s") && before[23].contains("PAUSED"),
        "{before:?}"
    );
    press(&mut screen, " ");
    assert!(lines(&screen, 80, 24)[3].contains(" 7/s"));
}

#[test]
fn what_is_lost_is_said_until_the_next_state() {
    let mut screen = screen();
    screen.lose(&format!("refused {HOSTILE}"));
    assert!(lines(&screen, 80, 24)[23].starts_with("LOST, and asked again: refused \\x1b[2J"));
    screen.take_state(document());
    assert!(lines(&screen, 80, 24)[23].starts_with("? help"));
}

#[test]
fn no_cell_holds_what_a_terminal_obeys_and_any_size_is_drawn() {
    let mut screen = screen();
    let mut wrong = Vec::new();
    for key in ["1", "2", "3", "4", "5", "?"] {
        press(&mut screen, key);
        for (width, height) in [(1, 1), (3, 2), (9, 4), (30, 10), (80, 24), (200, 60)] {
            let terminal = drawn(&screen, width, height);
            for cell in terminal.backend().buffer().content() {
                let is_bad = |c: char| c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c);
                if cell.symbol().chars().any(is_bad) {
                    wrong.push(format!("{key} {width}x{height}: {:?}", cell.symbol()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
    press(&mut screen, "4");
    assert!(lines(&screen, 80, 24)[3].contains("\\x1b[2J\\xc2\\x9b31m\\xe2\\x80\\xae鍵"));
}

#[test]
fn colours_are_used_only_where_they_are_wanted() {
    let colours = |has_colours| {
        let mut screen = Screen::new(String::new(), has_colours);
        screen.take_state(document());
        press(&mut screen, "2v");
        let terminal = drawn(&screen, 80, 24);
        let cells = terminal.backend().buffer().content().iter();
        cells
            .filter(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
            .count()
    };
    assert!(colours(true) > 0);
    assert_eq!(colours(false), 0);
}
