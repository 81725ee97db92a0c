//! `process_*`: metrics of any program, under the names that Prometheus's dashboards know.

use std::fs;

use super::page::Page;

/// What the process uses, as `/proc` tells it.
pub(super) struct Usage {
    /// Processor time, the kernel's for this process included.
    pub(super) cpu_seconds: f64,
    pub(super) resident_bytes: u64,
    /// Open files and sockets. `None`: `/proc` does not have them.
    pub(super) descriptors: Option<usize>,
    /// Files and sockets that may be open. `None`: any number.
    pub(super) most_descriptors: Option<u64>,
    virtual_bytes: u64,
    threads: u64,
    /// The start, in clock ticks since the machine's.
    started: u64,
}

impl Usage {
    /// What it uses now. `None`: there is no `/proc`.
    pub(super) fn now() -> Option<Self> {
        let stat = Stat::parse(&fs::read_to_string("/proc/self/stat").ok()?)?;
        let folder = fs::read_dir("/proc/self/fd").ok();
        Some(Self {
            cpu_seconds: (stat.user + stat.system) as f64 * tick(),
            resident_bytes: stat.resident_pages * rustix::param::page_size() as u64,
            // The descriptor of this directory does not count.
            descriptors: folder.map(|folder| folder.count().saturating_sub(1)),
            most_descriptors: rustix::process::getrlimit(rustix::process::Resource::Nofile).current,
            virtual_bytes: stat.virtual_bytes,
            threads: stat.threads,
            started: stat.started,
        })
    }
}

/// The length of a clock tick, in s.
fn tick() -> f64 {
    1.0 / rustix::param::clock_ticks_per_second() as f64
}

/// Rows from `/proc`. A row is left out where `/proc` does not have it.
pub(super) fn process(page: &mut Page) {
    let Some(usage) = Usage::now() else { return };
    page.foreign_family(
        "process_cpu_seconds",
        "counter",
        "Processor time, the kernel's for this process included.",
    );
    page.foreign_row("process_cpu_seconds_total", "", usage.cpu_seconds);
    if let Some(booted) = boot_time() {
        let started = booted as f64 + usage.started as f64 * tick();
        gauge(
            page,
            "process_start_time_seconds",
            "Start, in seconds since 1970.",
            started,
        );
    }
    gauge(
        page,
        "process_resident_memory_bytes",
        "Memory that is in use.",
        usage.resident_bytes,
    );
    let help = "Memory that is mapped.";
    gauge(page, "process_virtual_memory_bytes", help, usage.virtual_bytes);
    gauge(page, "process_threads", "Threads.", usage.threads);
    if let Some(open) = usage.descriptors {
        gauge(page, "process_open_fds", "Open files and sockets.", open);
    }
    if let Some(limit) = usage.most_descriptors {
        gauge(
            page,
            "process_max_fds",
            "Files and sockets that may be open.",
            limit,
        );
    }
}

fn gauge(page: &mut Page, name: &str, help: &str, value: impl std::fmt::Display) {
    page.foreign_family(name, "gauge", help);
    page.foreign_row(name, "", value);
}

/// Fields of `/proc/self/stat`, times in clock ticks.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stat {
    pub(super) user: u64,
    pub(super) system: u64,
    threads: u64,
    started: u64,
    pub(super) virtual_bytes: u64,
    pub(super) resident_pages: u64,
}

impl Stat {
    /// The fields of the file's text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        // The program's name, in parentheses, may hold blanks and parentheses. Field 3 is the first behind
        // it.
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_ascii_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse().ok();
        Some(Self {
            user: field(14)?,
            system: field(15)?,
            threads: field(20)?,
            started: field(22)?,
            virtual_bytes: field(23)?,
            resident_pages: field(24)?,
        })
    }
}

/// When the machine was started, in seconds since 1970.
fn boot_time() -> Option<u64> {
    let text = fs::read_to_string("/proc/stat").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("btime "))?;
    line.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::Stat;

    #[test]
    fn program_names_with_blanks_do_not_shift_the_fields() {
        let text = "42 (a) b (c) S 1 42 42 0 -1 4194304 9 0 0 0 150 25 0 0 20 0 5 0 7777 8192000 321 18446744073709551615\n";
        let expected = Stat {
            user: 150,
            system: 25,
            threads: 5,
            started: 7777,
            virtual_bytes: 8_192_000,
            resident_pages: 321,
        };
        assert_eq!(Stat::parse(text), Some(expected));
        assert_eq!(Stat::parse("42 (a"), None);
        assert_eq!(Stat::parse("42 (a) S 1"), None);
    }
}
