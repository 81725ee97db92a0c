//! The names of mcrouter's figures, and the groups that they are in.

use proxima_wire::memcache::Command;

/// A group of figures, or several: a bit for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group(u8);

const BASIC: u8 = 1;
const DETAILED: u8 = 2;
const ODS: u8 = 4;
const COUNT: u8 = 8;
const ERRORS: u8 = 16;

impl Group {
    pub(super) const ALL: Self = Self(u8::MAX);
    /// The group that the files of statistics hold.
    pub(super) const FILES: Self = Self(ODS);
    /// The groups of the counts, of the rates and of the errors of each command.
    pub(super) const COMMAND_COUNTS: Self = Self(BASIC | ODS | COUNT);
    pub(super) const COMMAND_RATES: Self = Self(BASIC | DETAILED | ODS);
    pub(super) const COMMAND_ERRORS: Self = Self(ERRORS);

    /// The group by its name in `stats`; the empty name is that of the basic figures.
    pub(super) fn named(name: &[u8]) -> Option<Self> {
        Some(Self(match name {
            b"" => BASIC,
            b"all" => return Some(Self::ALL),
            b"detailed" => DETAILED,
            b"cmd-error" => ERRORS,
            b"ods" => ODS,
            b"count" => COUNT,
            // Figures of parts that are not public.
            b"external" => 0,
            _ => return None,
        }))
    }

    /// Whether they have a group in common.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names of its figures.
    pub(super) fn figures(self) -> impl Iterator<Item = &'static str> {
        let rows = FIGURES.iter().filter(move |(groups, _)| self.meets(*groups));
        rows.flat_map(|(_, names)| names.split_ascii_whitespace())
    }
}

/// Figures by their groups.
const FIGURES: &[(Group, &str)] = &[
    (
        Group(BASIC | DETAILED),
        "version commandargs pid parent_pid time rusage_system rusage_user ps_user_time_sec
         ps_system_time_sec ps_vsize ps_num_minor_faults ps_num_major_faults destination_batches_sum
         destination_requests_sum destination_reqs_dirty_buffer_sum destination_reqs_total_sum",
    ),
    (
        Group(BASIC | DETAILED | ODS),
        "uptime num_client_connections num_servers num_servers_new num_servers_up num_servers_down
         num_servers_closed num_suspect_servers num_connections_opened num_connections_closed
         num_soft_tko_count num_hard_tko_count config_age config_last_attempt config_last_success
         config_failures num_ssl_servers num_ssl_servers_new num_ssl_servers_up num_ssl_servers_down
         num_ssl_servers_closed num_ssl_connections_opened num_ssl_connections_closed
         num_ssl_resumption_attempts num_ssl_resumption_successes num_authorization_failures
         num_authorization_successes inactive_connection_closed_interval_sec
         num_connect_success_after_retrying num_connect_retries num_fail_open_state_entered
         num_fail_open_state_exited retrans_closed_connections",
    ),
    (
        Group(BASIC | ODS),
        "asynclog_requests asynclog_requests_rate asynclog_spool_success_rate asynclog_duration_us ps_rss
         num_proxies proxy_reqs_processing proxy_reqs_waiting proxy_queue_full proxy_queues_all_full
         client_queue_notify_period duration_us duration_get_us duration_update_us fibers_allocated
         fibers_pool_size fibers_stack_high_watermark destination_pending_reqs destination_inflight_reqs
         destination_inflight_shadow_reqs destination_max_pending_reqs destination_max_inflight_reqs
         destination_max_inflight_shadow_reqs destination_batch_size destination_reqs_dirty_buffer_ratio
         retrans_per_kbyte_max max_num_tko outstanding_route_get_reqs_queued
         outstanding_route_get_avg_queue_size outstanding_route_get_avg_wait_time_sec
         outstanding_route_update_reqs_queued outstanding_route_update_avg_queue_size
         outstanding_route_update_avg_wait_time_sec",
    ),
    (
        Group(DETAILED),
        "replies_compressed replies_not_compressed reply_traffic_before_compression
         reply_traffic_after_compression",
    ),
    (
        Group(ODS | COUNT),
        "request_sent_count request_error_count request_success_count request_replied_count",
    ),
    (
        Group(DETAILED | ODS),
        "proxy_request_num_outstanding request_sent request_error request_success request_replied
         failover_all failover_all_failed failover_conditional failover_rate_limited failover_inorder_policy
         failover_inorder_policy_failed failover_least_failures_policy failover_least_failures_policy_failed
         failover_deterministic_order_policy failover_deterministic_order_policy_failed
         failover_rendezvous_policy failover_rendezvous_policy_failed final_result_error result_error
         result_error_all result_connect_error result_connect_error_all result_connect_timeout
         result_connect_timeout_all result_data_timeout result_data_timeout_all result_busy result_busy_all
         result_tko result_tko_all result_client_error result_client_error_all result_local_error
         result_local_error_all result_remote_error result_remote_error_all result_deadline_exceeded_error
         result_deadline_exceeded_error_all client_queue_notifications num_socket_writes
         num_socket_partial_writes retrans_per_kbyte_avg before_request_latency_injected
         after_request_latency_injected before_latency_injected after_latency_injected
         total_latency_injected configs_from_disk config_full_attempt config_partial_reconfig_attempt
         config_partial_reconfig_success",
    ),
    (
        Group(DETAILED | ODS | COUNT),
        "dev_null_requests rate_limited_log_count load_balancer_load_reset_count",
    ),
    (
        Group(ODS | COUNT),
        "result_error_count result_error_all_count result_connect_error_count result_connect_error_all_count
         result_connect_timeout_count result_connect_timeout_all_count result_data_timeout_count
         result_data_timeout_all_count result_busy_count result_busy_all_count result_tko_count
         result_tko_all_count result_client_error_count result_client_error_all_count
         result_local_error_count result_local_error_all_count result_remote_error_count
         result_remote_error_all_count result_deadline_exceeded_error_count
         result_deadline_exceeded_error_all_count failover_num_collisions
         failover_num_failed_domain_collisions failover_same_failure_domain failover_conditional_count
         failover_all_failed_count failover_policy_result_error failover_policy_tko_error
         redirected_lease_set_count request_deadline_num_copy",
    ),
];

/// Commands by mcrouter's names.
pub(super) const COMMANDS: [(&str, Command); 19] = [
    ("get", Command::Get),
    ("gets", Command::Gets),
    ("gat", Command::Gat),
    ("gats", Command::Gats),
    ("set", Command::Set),
    ("add", Command::Add),
    ("replace", Command::Replace),
    ("append", Command::Append),
    ("prepend", Command::Prepend),
    ("cas", Command::Cas),
    ("delete", Command::Delete),
    ("incr", Command::Incr),
    ("decr", Command::Decr),
    ("touch", Command::Touch),
    ("flushall", Command::FlushAll),
    ("stats", Command::Stats),
    ("lease_get", Command::LeaseGet),
    ("lease_set", Command::LeaseSet),
    ("metaget", Command::Metadata),
];
