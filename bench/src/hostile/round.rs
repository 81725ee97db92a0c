//! One round: well-behaved clients, and attackers for a while.

use std::{
    sync::atomic::{AtomicBool, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

use anyhow::Result;
use parking_lot::Mutex;

use super::{
    attack::{Attack, AttackContext, AttackCounters},
    bait,
    client::Client,
    newcomer,
    noise::Noise,
    options::Options,
    report::{ALLOWED, Round},
    score::Score,
};
use crate::process::{forget_peak, peak_resident_bytes};

/// Time that well-behaved clients are alone at first, so that their connections and the proxy's are made.
const ALONE: Duration = Duration::from_millis(300);

/// Time after which baits are set again, as they may be evicted.
const LAY_AGAIN: Duration = Duration::from_secs(1);

/// Bytes of an attacker's stack: attackers are many and need little.
const STACK: usize = 256 * 1024;

/// Runs one round. The keys of well-behaved clients begin with `keys`.
pub(super) fn run(
    options: &Options,
    attacks: &[Attack],
    keys: &str,
    interrupted: &AtomicBool,
) -> Result<Round> {
    let scores: Vec<_> = (0..options.clients)
        .map(|_| Mutex::new(Score::default()))
        .collect();
    let mut clients = Vec::new();
    for (number, score) in scores.iter().enumerate() {
        clients.push(Client::new(options, keys, number as u32, score)?);
    }
    let counters: Vec<_> = attacks
        .iter()
        .map(|attack| (*attack, AttackCounters::default()))
        .collect();
    let noise = Noise::default();
    let attacks_over = AtomicBool::new(false);
    let over = AtomicBool::new(false);
    if let Some(pid) = options.pid {
        forget_peak(pid);
    }
    let start = Instant::now();
    let newcomer = thread::scope(|scope| -> Result<Option<Duration>> {
        let over = &over;
        let is_over = || over.load(Relaxed);
        let noise = &noise;
        scope.spawn(move || noise.watch(options.pid, is_over));
        if let Some(server) = options.control {
            scope.spawn(move || noise.control(server, options.protocol, is_over));
        }
        for client in &mut clients {
            scope.spawn(move || client.run(is_over));
        }
        thread::sleep(ALONE);
        // Whatever happens here, the threads above must learn that the round is over.
        let attacked = attack(options, &counters, &attacks_over, || {
            follow(options, &scores, start, interrupted);
        });
        let newcomer = newcomer::until_served(options.address, options.protocol);
        over.store(true, Relaxed);
        attacked.map(|()| newcomer)
    })?;
    drop(clients);
    let (stalls, worst_noise) = noise.into_stalls();
    let limit = options.timeout + ALLOWED;
    let outcomes = scores
        .into_iter()
        .enumerate()
        .map(|(number, score)| score.into_inner().into_outcome(number as u32, limit, &stalls))
        .collect();
    let peak = options.pid.map(|pid| peak_resident_bytes(pid).ok());
    Ok(Round::new(
        options,
        counters
            .iter()
            .map(|(attack, counters)| counters.told(*attack))
            .collect(),
        outcomes,
        start.elapsed(),
        (worst_noise, stalls.total()),
        newcomer,
        peak,
    ))
}

/// Runs the attackers until `watch` returns. They have ended when this returns.
fn attack(
    options: &Options,
    counters: &[(Attack, AttackCounters)],
    over: &AtomicBool,
    watch: impl FnOnce(),
) -> Result<()> {
    thread::scope(|scope| {
        let started = counters.iter().try_for_each(|(attack, counters)| {
            // A storm is made stronger by each of its attackers.
            let times = match attack {
                Attack::ConnectionStorm => 1,
                _ => options.strength,
            };
            for number in 0..attack.attackers() * times {
                let context = AttackContext {
                    address: options.address,
                    protocol: options.protocol,
                    counters,
                    over,
                    strength: options.strength,
                };
                let run = move || attack.run(&context, number);
                thread::Builder::new()
                    .stack_size(STACK)
                    .spawn_scoped(scope, run)?;
            }
            Ok(())
        });
        if started.is_ok() {
            scope.spawn(move || lay_again(options, over));
            watch();
        }
        over.store(true, Relaxed);
        started
    })
}

/// Baits may be evicted, and the target may be flushed.
fn lay_again(options: &Options, over: &AtomicBool) {
    while !over.load(Relaxed) {
        // If it fails, attacks ask for keys that do not exist.
        let _ = bait::lay(options.address, options.protocol);
        thread::sleep(LAY_AGAIN);
    }
}

/// Prints a line each second until the attacks are over.
fn follow(options: &Options, scores: &[Mutex<Score>], start: Instant, interrupted: &AtomicBool) {
    let begun = Instant::now();
    let mut before = 0;
    let mut second = 0;
    while begun.elapsed() < options.duration && !interrupted.load(Relaxed) {
        thread::sleep(Duration::from_millis(50).min(options.duration.saturating_sub(begun.elapsed())));
        if begun.elapsed().as_secs() == second || options.output.quiet {
            continue;
        }
        second = begun.elapsed().as_secs();
        let mut replies = 0;
        let mut sums = [0; 4];
        let mut worst = Duration::ZERO;
        for score in scores {
            let score = score.lock();
            replies += score.replies;
            worst = worst.max(score.worst());
            for (sum, number) in sums.iter_mut().zip(score.failures()) {
                *sum += number;
            }
        }
        let [wrong, slow, refused, lost] = sums;
        eprintln!(
            "{:>4} s {:>7} replies/s  wrong {wrong}  above {:?} {slow}  refused {refused}  lost {lost}  worst {worst:.1?}",
            start.elapsed().as_secs(),
            replies - before,
            options.timeout,
        );
        before = replies;
    }
}
