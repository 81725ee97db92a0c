//! Lines that a proxy and its servers may understand differently, in length or in the number of replies.
//!
//! The value after each of them is a command. If one of the two takes the line for a request with a value and
//! the other does not, the server's reply to that command belongs to no request. On a shared connection it
//! reaches a well-behaved client.

use std::time::Duration;

use super::context::AttackContext;
use crate::hostile::bait::CANARY;

/// Requests between two looks at the replies.
const BURST: usize = 8;

/// Pause between two requests: the second one meets what the first has left on a shared connection.
const BETWEEN: Duration = Duration::from_millis(2);

pub(super) fn run(context: &AttackContext<'_>, number: u32) {
    let requests = requests();
    // Attackers start at different places of the list.
    let mut turn = number as usize * 17;
    while !context.is_over() {
        // After some lines everything on the connection is a value, so each burst has a new connection.
        let Some(mut connection) = context.connect() else {
            continue;
        };
        for _ in 0..BURST {
            turn += 1;
            context.count_requests(1);
            if !connection.send(&requests[turn % requests.len()]) {
                break;
            }
            context.pause(BETWEEN);
        }
        connection.receive(&mut [0; 64 * 1024]);
    }
}

/// Every line, with the command that is its value if it has one. The function is long because it is a list.
fn requests() -> Vec<Vec<u8>> {
    let command = format!("get {CANARY}");
    let size = command.len();
    let long = "k".repeat(251);
    let with_value = [
        // Flags that are invalid in number, length or kind.
        format!("ms ~x {size} !"),
        format!("ms ~x {size} -"),
        format!("ms ~x {size} ~"),
        format!("ms ~x {size} \x01"),
        format!("ms ~x {size} \u{e9}"),
        format!("ms ~x {size} T"),
        format!("ms ~x {size} Tx"),
        format!("ms ~x {size} F-1"),
        format!("ms ~x {size} Mx"),
        format!("ms ~x {size} M"),
        format!("ms ~x {size} C"),
        format!("ms ~x {size} Cx"),
        format!("ms ~x {size} b"),
        format!("ms ~x {size} c c c"),
        format!("ms ~x {size} O{}", "o".repeat(100)),
        format!("ms ~x {size} I I q k{}", " s".repeat(40)),
        format!("ms ~x {size} {}", "b".repeat(300)),
        format!("ms ~x S{size}"),
        format!("ms ~x {size} S{size}"),
        format!("ms ~x 0{size}"),
        format!("ms ~x +{size}"),
        format!("ms ~x {size}x"),
        format!("ms ~x  {size}"),
        format!("ms {long} {size}"),
        format!("ms ~\x01 {size}"),
        format!("ms {size}"),
        format!("MS ~x {size}"),
        // The same with text.
        format!("set ~x 0 0 {size} x"),
        format!("set ~x 0 0 {size} noreply x"),
        format!("set ~x 0 0 {size} NOREPLY"),
        format!("set ~x 0 0 0{size}"),
        format!("set ~x 0 0 +{size}"),
        format!("set ~x 0 0 {size}x"),
        format!("set ~x x 0 {size}"),
        format!("set ~x -1 0 {size}"),
        format!("set ~x 4294967296 0 {size}"),
        format!("set ~x 0 x {size}"),
        format!("set ~x 0 99999999999999999999 {size}"),
        format!("set ~x 0 0 {size}\0"),
        format!("set ~x\t0 0 {size}"),
        format!("set ~x\x0b0 0 {size}"),
        format!("set  ~x  0  0  {size}  "),
        format!(" set ~x 0 0 {size}"),
        format!("set {long} 0 0 {size}"),
        format!("set ~\x7fx\x01 0 0 {size}"),
        format!("set noreply 0 0 {size}"),
        format!("set noreply 0 0 {size} noreply"),
        format!("add ~x 0 0 {size} noreply"),
        format!("append ~x 0 0 {size}"),
        format!("prepend ~nothing 0 0 {size}"),
        format!("cas ~x 0 0 {size}"),
        format!("cas ~x 0 0 {size} x"),
        format!("cas ~x 0 0 {size} 1 noreply x"),
        format!("cas ~x 0 0 {size} 18446744073709551616"),
        format!("set ~x 0 0 {} ", size - 1),
        format!("set ~x 0 0 {}", size + 1),
        format!("set ~x 0 0 {}", u64::MAX),
        format!("set ~x 0 0 {}", i32::MAX),
        "set ~x 0 0 -2".to_owned(),
    ];
    let alone = [
        "mg ~x !",
        "mg ~x k v q s t f c h l O123 !",
        "mg ~x v v",
        "mg",
        "mg  ",
        "mn !",
        "mn x",
        "md ~x !",
        "md ~x q",
        "ma ~x !",
        "ma ~x D",
        "ma ~x Dx N",
        "me ~x !",
        "me",
        "mg noreply v",
        "md noreply q",
        "delete noreply",
        "delete noreply noreply",
        "delete ~x 0",
        "delete ~x 0 noreply",
        "delete ~x 1",
        "delete ~x noreply x",
        "touch noreply 0",
        "touch ~x x",
        "incr noreply 1",
        "incr ~x 1 x",
        "incr ~x -1",
        "incr ~x 18446744073709551616",
        "decr ~x 1 noreply x",
        "gat 0",
        "gat x ~x",
        "gats 0 ~x ~x",
        "get ~x\rget ~canary",
        "get ~x\0get ~canary",
        "get\t~x",
        "gets",
        "verbosity",
        "verbosity 0 noreply x",
        "version x",
        "stats x",
        "lru",
        "watch",
        "mq",
        "mx ~x",
    ];
    let quiet = "mg ~none q\r\nmg ~none k q\r\nmd ~none q\r\nms ~x 1 q\r\n1\r\nma ~none q\r\nset ~x 0 0 1 noreply\r\n1\r\nmn\r\n";
    let mut requests = Vec::new();
    for line in with_value {
        requests.push(format!("{line}\r\n{command}\r\n").into_bytes());
        requests.push(format!("{line}\n{command}\r\n").into_bytes());
    }
    requests.extend(alone.iter().map(|line| format!("{line}\r\n").into_bytes()));
    requests.push(quiet.as_bytes().to_vec());
    requests
}
