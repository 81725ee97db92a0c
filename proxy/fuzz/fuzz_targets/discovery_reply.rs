//! Answers of configuration endpoints: any bytes are read or refused, and a list that was read is written as
//! it was. What is whole does not become whole earlier or later when its bytes come one by one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proxima::members::discovery::{NodeList, Reply, answer, read};
use proxima_wire::memcache::Discovery;

fuzz_target!(|bytes: &[u8]| {
    for question in Discovery::ALL {
        let whole = read(question, bytes);
        if let Ok(Some(Reply::List(list))) = &whole {
            let written = answer(question, list);
            assert_eq!(read(question, &written), Ok(Some(Reply::List(list.clone()))));
            assert_eq!(list.servers().len(), list.nodes().len());
            for end in 0..bytes.len() {
                assert_eq!(read(question, &bytes[..end]), Ok(None));
            }
        }
    }
    if let Ok(list) = NodeList::parse(bytes) {
        assert_eq!(NodeList::parse(list.text().as_bytes()), Ok(list));
    }
});
