//! `process_*`: metrics of any program, under the names that Prometheus's dashboards know.

use std::fs;

use super::page::Page;

/// Rows from `/proc`. A row is left out where `/proc` does not have it.
pub(super) fn process(page: &mut Page) {
    if let Some(stat) = fs::read_to_string("/proc/self/stat")
        .ok()
        .and_then(|text| Stat::parse(&text))
    {
        let tick = 1.0 / rustix::param::clock_ticks_per_second() as f64;
        let cpu = (stat.user + stat.system) as f64 * tick;
        page.foreign_family(
            "process_cpu_seconds",
            "counter",
            "Processor time, the kernel's for this process included.",
        );
        page.foreign_row("process_cpu_seconds_total", "", cpu);
        if let Some(booted) = boot_time() {
            let started = booted as f64 + stat.started as f64 * tick;
            gauge(
                page,
                "process_start_time_seconds",
                "Start, in seconds since 1970.",
                started,
            );
        }
        let resident = stat.resident_pages * rustix::param::page_size() as u64;
        gauge(
            page,
            "process_resident_memory_bytes",
            "Memory that is in use.",
            resident,
        );
        let help = "Memory that is mapped.";
        gauge(page, "process_virtual_memory_bytes", help, stat.virtual_bytes);
        gauge(page, "process_threads", "Threads.", stat.threads);
    }
    if let Ok(folder) = fs::read_dir("/proc/self/fd") {
        // The descriptor of this directory does not count.
        let open = folder.count().saturating_sub(1);
        gauge(page, "process_open_fds", "Open files and sockets.", open);
    }
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    if let Some(limit) = limit {
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
