//! The effects of passing time, beside memcached's real clock. There is one test, because it mostly waits.

use std::{thread::sleep, time::Duration};

use crate::both::Both;

#[test]
fn expired_items_are_gone_as_in_memcached() {
    let mut both = Both::start();
    let all = |both: &mut Both, commands: &[&str]| {
        for command in commands {
            both.same(&(command.replace('|', "\r\n") + "\r\n"));
        }
    };
    all(
        &mut both,
        &[
            "set a 0 1 1|1",
            "set b 0 0 1|1",
            "set c 0 10 1|1",
            "ms d 1 T1|1",
            "set e 0 0 1|1",
            "gat 1 e",
            "mg f N1",
            "set g 0 {unix 1} 1|1",
            "set h 0 1 1|1",
            "touch h 10",
        ],
    );
    sleep(Duration::from_millis(2_500));
    all(
        &mut both,
        &[
            "get a b c d e f g h",
            "add a 0 0 1|2",
            "incr d 1",
            "append e 0 0 1|1",
            "mg c t h",
            "touch f 10",
            "delete g",
            "me a",
            "flush_all 2",
            "get a b c",
        ],
    );
    sleep(Duration::from_millis(3_500));
    all(
        &mut both,
        &["get a b c h", "set a 0 0 1|3", "get a", "add b 0 0 1|4", "get b"],
    );
    sleep(Duration::from_millis(1_500));
    all(&mut both, &["get a b c"]);
}
