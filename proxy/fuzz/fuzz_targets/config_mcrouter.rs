//! mcrouter's command line and JSON: any text is read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima::frontdoor::mcrouter;

fuzz_target!(|text: &str| {
    // With a blank before it, it cannot be the name of a file.
    let _ = mcrouter::start(["-p1".to_owned(), format!("--config-str= {text}")]);
});
