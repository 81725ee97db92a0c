//! twemproxy's file: any text is read or refused, and what is refused has its place.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use proxima::frontdoor::nutcracker;

fuzz_target!(|text: &str| {
    match nutcracker::parse(text, Path::new("F")) {
        Ok(loaded) => assert!(!loaded.config.pools.is_empty()),
        Err(error) => assert!(error.to_string().starts_with("F:"), "{error}"),
    }
});
