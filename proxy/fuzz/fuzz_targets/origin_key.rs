//! Keys in URLs of origins: whatever the key, a parser of URLs finds the same host, and the key where the
//! configuration has it, in one segment or one value of the query, byte for byte.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima::config::schema::OriginUrl;
use url::Url;

const URLS: [&str; 6] = [
    "http://origin.example:7000/{key}",
    "http://origin.example:7000/maps/{key}/latest",
    "http://origin.example:7000/maps/.{key}",
    "http://origin.example:7000/maps/{key}%2e?v=1",
    "http://origin.example:7000/maps?key={key}&v=1",
    "http://origin.example:7000/maps/..x?{key}",
];

fn parsed(url: &OriginUrl, target: &str) -> Url {
    Url::parse(&format!("http://{}{target}", url.authority())).unwrap()
}

fuzz_target!(|key: &[u8]| {
    for text in URLS {
        let url: OriginUrl = text.parse().unwrap();
        let plain = parsed(&url, &url.target(b"plain").unwrap());
        let Some(target) = url.target(key) else {
            let is_dots = key.len() < 3 && key.iter().all(|&byte| byte == b'.');
            assert!(is_dots || key.len() > 8 << 10, "{text}");
            continue;
        };
        assert!(target.bytes().all(|byte| byte.is_ascii_graphic()));
        let with_key = parsed(&url, &target);
        assert_eq!(with_key.origin(), plain.origin());
        assert_eq!((with_key.username(), with_key.password()), ("", None));
        assert_eq!(with_key.fragment(), None);
        // A parser that changes nothing has found no dots, and nothing that it would have to escape.
        let rest = &with_key[url::Position::BeforePath..];
        assert_eq!(rest, target);
        let segments = |url: &Url| {
            url.path_segments()
                .unwrap()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let (ours, plains) = (segments(&with_key), segments(&plain));
        assert_eq!(ours.len(), plains.len());
        assert!(
            ours.iter()
                .zip(&plains)
                .all(|(our, plain)| our == plain || plain.contains("plain"))
        );
        let parts = |url: &Url| url.query().map_or(0, |query| query.split('&').count());
        assert_eq!(parts(&with_key), parts(&plain));
        let escaped = &target[url.before.len()..target.len() - url.after.len()];
        let decoded: Vec<u8> = percent_encoding::percent_decode_str(escaped).collect();
        assert_eq!(decoded, key);
    }
});
