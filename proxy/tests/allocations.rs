//! A request that passes only choose routes (hash, nearest, operation, prefix …) allocates nothing once its
//! buffers have grown.

#[path = "../../guard/src/traffic.rs"]
mod traffic;

use std::alloc::System;

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use traffic::{SCENARIOS, Traffic};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

// This is the only test of this file, because another thread's allocations would count here.
#[test]
fn ten_thousand_requests_allocate_nothing() {
    for scenario in &SCENARIOS {
        let mut traffic = Traffic::record(scenario);
        // Lanes take their buffers in turns, and each of them has to grow.
        while traffic.replies() < 5_000 {
            traffic.replay();
        }
        let before = traffic.replies();
        let region = Region::new(ALLOCATOR);
        while traffic.replies() - before < 10_000 {
            traffic.replay();
        }
        let change = region.change();
        assert_eq!(
            (change.allocations, change.reallocations),
            (0, 0),
            "{}: {change:?}",
            scenario.name
        );
    }
}
