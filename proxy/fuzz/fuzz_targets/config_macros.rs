//! mcrouter's configuration language: any value, and any definition, is expanded or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima::frontdoor::mcrouter;

fuzz_target!(|texts: (&str, &str)| {
    let (defined, value) = texts;
    let _ = mcrouter::start([
        "-p1".to_owned(),
        format!(
            "--config-str={{\"macros\": {{\"m\": {{\"type\": \"macroDef\", \"params\": [\"a\"], \"result\": {defined}}},
            \"c\": {{\"type\": \"constDef\", \"result\": [1, \"x\"]}}}}, \"x\": {value}, \"route\": \"NullRoute\"}}"
        ),
    ]);
});
