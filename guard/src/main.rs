//! Replays recorded traffic through an engine: `replay SCENARIO ROUNDS`. Under callgrind, two runs with
//! different numbers of rounds differ by the cost of the additional rounds (`proxy/tests/instructions.rs`
//! computes it).

mod traffic;

use traffic::{SCENARIOS, Traffic};

fn main() -> Result<(), String> {
    let usage = "usage: replay SCENARIO ROUNDS";
    let mut args = std::env::args().skip(1);
    let name = args.next().ok_or(usage)?;
    let rounds: usize = args.next().and_then(|text| text.parse().ok()).ok_or(usage)?;
    let scenario = SCENARIOS
        .iter()
        .find(|scenario| scenario.name == name)
        .ok_or("no such scenario")?;
    let mut traffic = Traffic::record(scenario);
    let before = traffic.replies();
    for _ in 0..rounds {
        traffic.replay();
    }
    println!("{}", traffic.replies() - before);
    Ok(())
}
