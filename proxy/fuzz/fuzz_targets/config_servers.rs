//! Files of servers: any text is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima::config::source::file;

fuzz_target!(|text: &str| {
    if let Ok(listed) = file::parse(text) {
        assert!(
            listed
                .iter()
                .all(|server| server.weight.is_finite() && !server.address.is_empty())
        );
    }
});
