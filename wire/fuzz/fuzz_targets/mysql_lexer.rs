//! No text breaks the lexer, and a write behind a read makes the whole no read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima_wire::mysql::sql::{Charset, Class, LONGEST, Mode, statement};

fuzz_target!(|input: (bool, bool, u8, &[u8])| {
    let (ansi_quotes, no_backslash_escapes, charset, text) = input;
    let charset = match charset % 3 {
        0 => Charset::Utf8,
        1 => Charset::Single,
        _ => Charset::Hiding,
    };
    let mode = Mode {
        ansi_quotes,
        no_backslash_escapes,
        charset,
    };
    let before = statement(text, mode);
    if before.class != Class::Read || text.len() + 32 > LONGEST {
        return;
    }
    let behind = statement(&[text, b"\n; DELETE FROM t"].concat(), mode);
    assert!(!behind.class.is_read(), "{behind:?}");
});
