//! mcrouter's command-line options as data: name, value, and how they are treated here.

/// One option.
#[derive(Debug)]
pub(super) struct Opt {
    /// The long name without its dashes.
    pub(super) name: &'static str,
    /// The short name, or `\0`.
    pub(super) short: char,
    /// The name in flavor files, if it is not the long name with `_`.
    pub(super) internal: &'static str,
    /// The option of that name is the opposite of this one.
    pub(super) is_opposite: bool,
    pub(super) takes: ValueKind,
    pub(super) status: Status,
}

/// The kind of value of an option, and its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueKind {
    Text(&'static str),
    Number(i64),
    /// `--name` inverts the default; `=true|false|1|0` sets it.
    Toggle(bool),
    /// Off by default; on alone, with `=true|false`, or with a number from 1, which is that of copies.
    Acks,
}

/// How an option is treated that asks for something else than its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// It has the same effect as in mcrouter.
    Served,
    /// mcrouter has no such option: it asks for something that only Proxima has.
    Ours,
    /// It is about something that only mcrouter has, and that no client sees.
    Idle,
    /// Its effect is missing, which is logged at the start.
    Missing,
    /// It is refused, for this reason: without its effect clients would get something else than they should.
    Refused(&'static str),
}

use Status::{Idle, Missing, Ours, Refused, Served};
use ValueKind::{Acks, Number, Text, Toggle};

const ACL: &str = "there are no lists of who may do what";
const THRIFT: &str = "only mcrouter's own protocol for memcached's clients is spoken";

const fn opt(name: &'static str, takes: ValueKind, status: Status) -> Opt {
    Opt {
        name,
        short: '\0',
        internal: "",
        is_opposite: false,
        takes,
        status,
    }
}

impl Opt {
    const fn short(self, short: char) -> Self {
        Self { short, ..self }
    }

    const fn internal(self, internal: &'static str) -> Self {
        Self { internal, ..self }
    }

    /// A toggle whose name in flavor files is that of the opposite.
    const fn opposite(self, internal: &'static str) -> Self {
        Self {
            is_opposite: true,
            ..self.internal(internal)
        }
    }

    /// The name in flavor files.
    pub(super) fn internal_name(&self) -> String {
        if self.internal.is_empty() {
            self.name.replace('-', "_")
        } else {
            self.internal.to_owned()
        }
    }
}

/// The option of that long name.
pub(super) fn by_name(name: &str) -> Option<&'static Opt> {
    let name = name.replace('_', "-");
    OPTIONS
        .iter()
        .find(|option| option.name.replace('_', "-") == name)
}

/// A long name as getopt reads it: it may be cut short as long as it is the beginning of one name, and
/// options of ours make none of mcrouter's ambiguous. `others` are names that are no settings. `None`: no
/// option, or several.
pub(super) fn by_long<'a>(name: &str, others: &[&'a str]) -> Option<&'a str> {
    let name = name.replace('_', "-");
    let known = |is_ours: bool| {
        let options = OPTIONS
            .iter()
            .filter(move |option| (option.status == Ours) == is_ours)
            .map(|option| option.name);
        options.chain(others.iter().copied().filter(move |_| !is_ours))
    };
    let all = || known(false).chain(known(true));
    if let Some(exact) = all().find(|known| known.replace('_', "-") == name) {
        return Some(exact);
    }
    let begins = |known: &&str| !name.is_empty() && known.replace('_', "-").starts_with(&name);
    let is_ours = known(false).all(|known| !begins(&known));
    let mut found = known(is_ours).filter(begins);
    found.next().filter(|_| found.next().is_none())
}

/// The option of that short name.
pub(super) fn by_short(short: char) -> Option<&'static Opt> {
    OPTIONS
        .iter()
        .find(|option| option.short == short && short != '\0')
}

/// The option of that name in flavor files.
pub(super) fn by_internal(name: &str) -> Option<&'static Opt> {
    OPTIONS
        .iter()
        .find(|option| option.internal_name() == name)
        .or_else(|| by_name(name))
}

/// All options but `--help`, `--version` and `--validate-config`, which are not settings.
pub(super) static OPTIONS: &[Opt] = &[
    // The configuration.
    opt("config", Text(""), Served),
    opt("config-file", Text(""), Served).short('f'),
    opt("config-str", Text(""), Served),
    opt("route-prefix", Text("/././"), Served)
        .short('R')
        .internal("default_route"),
    opt("num-proxies", Text("1"), Served),
    opt("proxy-threads", Text(""), Served),
    opt("service-name", Text("mcrouter"), Served),
    opt("carbon-router-name", Text("Memcache"), Idle),
    opt("config-params", Text(""), Served),
    opt("additional-config-params", Text(""), Served),
    opt("runtime-vars-file", Text(""), Served),
    // Listeners.
    opt("port", Text(""), Served).short('p').internal("ports"),
    opt("listen-addresses", Text(""), Served),
    opt("unix-domain-sock", Text(""), Served),
    opt("ssl-port", Text(""), Served).internal("ssl_ports"),
    opt("listen-sock-fd", Number(-1), Served),
    opt("max-conns", Number(0), Served),
    opt("tcp-listen-backlog", Number(4096), Served),
    opt("max-client-outstanding-reqs", Number(34133), Served),
    opt("client-timeout", Number(1000), Served).internal("client_timeout_ms"),
    opt("num-listening-sockets", Number(1), Idle),
    opt("retain-source-ip", Toggle(false), Served),
    // Servers.
    opt("server-timeout", Number(1000), Served)
        .short('t')
        .internal("server_timeout_ms"),
    opt("cross-region-timeout-ms", Number(0), Served),
    opt("cross-cluster-timeout-ms", Number(0), Served),
    opt("within-cluster-timeout-ms", Number(0), Served),
    opt("waiting-request-timeout-ms", Number(0), Missing),
    opt("connect-timeout-retries", Number(0), Idle),
    opt("probe-timeout-initial", Number(10_000), Served)
        .short('r')
        .internal("probe_delay_initial_ms"),
    opt("retry-timeout", Number(10_000), Served),
    opt("probe-timeout-max", Number(60_000), Served).internal("probe_delay_max_ms"),
    opt("timeouts-until-tko", Number(3), Served).internal("failures_until_tko"),
    opt("disable-tko-tracking", Toggle(false), Served),
    opt("reset-inactive-connection-interval", Number(60_000), Served),
    opt("keepalive-count", Number(0), Served)
        .short('K')
        .internal("keepalive_cnt"),
    opt("keepalive-interval", Number(60), Served)
        .short('i')
        .internal("keepalive_interval_s"),
    opt("keepalive-idle", Number(300), Served)
        .short('I')
        .internal("keepalive_idle_s"),
    opt("tcp-rto-min", Number(-1), Idle),
    opt("max-no-flush-event-loops", Number(5), Idle),
    opt("target-max-inflight-requests", Number(0), Served),
    opt("target-max-pending-requests", Number(100_000), Served),
    opt("target-max-shadow-requests", Number(1000), Served),
    opt("proxy-max-inflight-requests", Number(0), Served),
    opt("proxy-max-throttled-requests", Number(0), Served),
    opt("proxy-max-inflight-shadow-requests", Number(0), Idle),
    // Requests and replies.
    opt("enable-flush-cmd", Toggle(false), Served),
    opt("send-invalid-route-to-default", Toggle(false), Served),
    opt("group-remote-errors", Toggle(false), Idle),
    opt("allow-only-gets", Toggle(false), Served),
    opt("disable-request-deadline-check", Toggle(false), Idle),
    opt("big-value-split-threshold", Number(0), Served),
    opt("big-value-batch-size", Number(10), Served),
    opt("big-value-hide-reply-flag", Toggle(false), Served),
    opt("enable-logging-route", Toggle(false), Served),
    opt("disable-shard-split-route", Toggle(false), Served),
    opt("disable-send-to-main-shard-split", Toggle(false), Idle),
    opt("max-shadow-token-map-size", Number(1024), Idle),
    opt("asynclog-disable", Toggle(false), Served),
    opt("async-dir", Text("/var/spool/mcrouter"), Served)
        .short('a')
        .internal("async_spool"),
    opt("use-asynclog-version2", Toggle(false), Served),
    opt("asynclog-port-override", Number(0), Served),
    // Logs and files.
    opt("log-path", Text(""), Served).short('L').internal("log_file"),
    opt("verbosity", Text("1"), Served).short('v'),
    opt("stats-root", Text("/var/mcrouter/stats"), Served),
    opt("stats-logging-interval", Number(10_000), Served),
    opt("stats-async-queue-length", Number(50), Idle),
    opt("pool-stats-config-file", Text(""), Served),
    opt("debug-fifo-root", Text("/var/mcrouter/fifos"), Missing),
    opt("config-dump-root", Text("/var/mcrouter/config"), Served),
    opt("max-dumped-config-age", Number(43_200), Served),
    opt("disable-failure-logging", Toggle(false), Idle).opposite("enable_failure_logging"),
    opt("test-mode", Toggle(false), Idle),
    opt("logging-rtt-outlier-threshold-us", Number(0), Idle),
    opt("collect-rxmit-stats-every-hz", Number(0), Idle),
    opt("rxmit-latency-deviation-us", Number(0), Idle),
    opt("min-rxmit-reconnect-threshold", Number(0), Idle),
    opt("max-rxmit-reconnect-threshold", Number(0), Idle),
    // Reloading.
    opt("disable-reload-configs", Toggle(false), Served),
    opt("constantly-reload-configs", Toggle(false), Idle),
    opt("reconfiguration-delay-ms", Number(1000), Served),
    opt("reconfiguration-jitter-ms", Number(0), Served),
    opt("post-reconfiguration-delay-ms", Number(0), Idle),
    opt("file-observer-poll-period-ms", Number(100), Idle),
    opt("file-observer-sleep-before-update-ms", Number(1000), Idle),
    // TLS and packet marks.
    opt("pem-cert-path", Text(""), Served),
    opt("pem-key-path", Text(""), Served),
    opt("pem-ca-path", Text(""), Served),
    opt("ssl-verify-peers", Toggle(false), Served),
    opt("ssl-service-identity", Text(""), Idle),
    opt("additional-ssl-service-identities", Text(""), Idle),
    opt("ssl-service-identity-authorization-log", Toggle(false), Idle),
    opt("ssl-service-identity-authorization-enforce", Toggle(false), Idle),
    opt("ssl-connection-cache", Toggle(false), Idle),
    opt("ssl-handshake-offload", Toggle(false), Idle),
    opt("enable-ssl-tfo", Toggle(false), Idle),
    opt("server-pem-cert-path", Text(""), Served),
    opt("server-pem-key-path", Text(""), Served),
    opt("server-pem-ca-path", Text(""), Served),
    opt("ssl-require-peer-certs", Toggle(false), Served),
    opt("tls-ticket-key-seed-path", Text(""), Idle),
    opt("ssl-use-ktls12", Toggle(false), Idle),
    opt("tfo-queue-size", Number(100_000), Idle),
    opt("enable-qos", Toggle(false), Missing),
    opt("default-qos-class", Number(0), Idle),
    opt("default-qos-path", Number(0), Idle),
    opt("acl-checker-enable", Toggle(false), Refused(ACL)),
    opt("acl-checker-enforce", Toggle(false), Refused(ACL)),
    opt("prefix-acl-checker-enable", Toggle(false), Refused(ACL)),
    opt("server-ssl-service-identity", Text("memcache"), Idle),
    // Threads.
    opt("core-multiplier", Text("0"), Served),
    opt("core-multiplier-threshold", Number(0), Served),
    opt("enable-compression", Toggle(false), Idle),
    opt("enable-server-compression", Toggle(false), Idle),
    opt("enable-pass-through-mode", Toggle(false), Idle),
    opt("tcp-zero-copy-threshold", Number(0), Idle),
    opt("remote-thread", Toggle(false), Idle),
    opt("server-load-interval-ms", Number(0), Idle),
    opt("fibers-max-pool-size", Number(1000), Idle),
    opt("fibers-stack-size", Number(24_576), Idle),
    opt("fibers-record-stack-size-every", Number(100_000), Idle),
    opt("disable-fibers-use-guard-pages", Toggle(false), Idle).opposite("fibers_use_guard_pages"),
    opt("fibers-pool-resize-period-ms", Number(60_000), Idle),
    opt("jemalloc-nodump-buffers", Toggle(false), Idle),
    opt("use-mux-io-thread-pool", Toggle(false), Idle),
    opt("force-same-thread", Toggle(false), Idle),
    opt("thread-affinity", Toggle(false), Idle),
    opt("enable-service-router", Toggle(false), Idle),
    opt("thrift-compression-threshold", Number(0), Idle),
    opt("xdp-tx-truncate-bytes", Number(3072), Idle),
    opt("enable-axonlog", Toggle(false), Idle),
    opt("proxy-cpu-interval-s", Number(0), Idle),
    opt("delete-carbon-instance-upon-init-failure", Toggle(false), Idle),
    opt("dump_preprocessed_config_enabled", Toggle(false), Idle),
    opt("max_preprocessed_config_history", Number(0), Idle),
    opt("use-thrift", Toggle(false), Refused(THRIFT)),
    opt("thrift-port", Number(0), Refused(THRIFT)),
    opt("thrift-listen-sock-fd", Number(-1), Refused(THRIFT)),
    opt("gets", Toggle(false), Idle),
    opt("skip-sanity-checks", Toggle(false), Idle),
    // Options that mcrouter does not have.
    opt("admin", Text(""), Ours),
    opt("io", Text("auto"), Ours),
    opt("keep-writing", Acks, Ours),
    opt("keep-writing-state", Text(""), Ours),
    opt("fleet", Text(""), Ours),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_about_migrating_names_every_option_that_is_not_served() {
        let page = include_str!("../../../../docs/migrating-from-mcrouter.md");
        let named = |name: &str| page.contains(&format!("`--{name}`"));
        let unserved = OPTIONS
            .iter()
            .filter(|option| !matches!(option.status, Served | Ours));
        let missing: Vec<&str> = unserved
            .map(|option| option.name)
            .filter(|name| !named(name))
            .collect();
        assert_eq!(missing, [""; 0]);
    }

    #[test]
    fn no_name_stands_for_two_options() {
        let mut names: Vec<String> = OPTIONS
            .iter()
            .map(|option| option.name.replace('_', "-"))
            .collect();
        let mut internal: Vec<String> = OPTIONS.iter().map(Opt::internal_name).collect();
        let mut shorts: Vec<char> = OPTIONS
            .iter()
            .map(|option| option.short)
            .filter(|short| *short != '\0')
            .collect();
        let count = (names.len(), internal.len(), shorts.len());
        names.sort();
        names.dedup();
        internal.sort();
        internal.dedup();
        shorts.sort_unstable();
        shorts.dedup();
        assert_eq!((names.len(), internal.len(), shorts.len()), count);
    }
}
