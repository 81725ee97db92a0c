//! Pages of a list and lines of a watch of EndpointSlices: any bytes are taken or change nothing, and what
//! was chosen is read as it was kept.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima::{
    config::schema::ServicePort,
    members::endpoints::{EndpointList, Listing},
};

fuzz_target!(|text: &[u8]| {
    let mut listing = Listing::of("mc");
    let mut lines = text.split(|&byte| byte == b'\n');
    let page = lines.next().unwrap_or_default();
    if listing.page(page).is_err() {
        listing = Listing::of("mc");
    }
    let Ok(mut slices) = listing.whole(None) else {
        return;
    };
    for line in lines {
        let before = slices.clone();
        match slices.hear(line) {
            Ok(is_new) => {
                assert!(is_new || slices.choose(&ServicePort::Only) == before.choose(&ServicePort::Only))
            }
            Err(_) => assert_eq!(slices, before),
        }
    }
    for port in [
        ServicePort::Only,
        ServicePort::Number(1),
        ServicePort::Name("mc".into()),
    ] {
        let choice = slices.choose(&port);
        let kept = EndpointList::parse(choice.list.text().as_bytes()).unwrap();
        assert_eq!(kept, choice.list);
        assert_eq!(kept.servers().len(), choice.list.endpoints().len());
    }
});
