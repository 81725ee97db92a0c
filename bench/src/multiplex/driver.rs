//! Drivers: what each asks for with its login, and what it says before the first statement of its user.

use proxima_wire::mysql::Capabilities;

use crate::mysql::COMMON;

/// A driver, or a library above one.
pub(super) struct Driver {
    /// The capabilities of its login.
    pub(super) capabilities: Capabilities,
    /// Its first statements. Behind them the session is in autocommit.
    pub(super) preamble: &'static [&'static str],
}

impl Driver {
    /// Whether results end without EOF packets.
    pub(super) fn deprecates_eof(&self) -> bool {
        self.capabilities.has(Capabilities::DEPRECATE_EOF)
    }
}

/// The capabilities of mysqlclient, which is the C library.
const MYSQLCLIENT: Capabilities = COMMON
    .with(Capabilities::LOCAL_FILES)
    .with(Capabilities::MULTI_STATEMENTS)
    .with(Capabilities::PS_MULTI_RESULTS)
    .with(Capabilities::SESSION_TRACK);

/// go-sql-driver with its defaults, which says nothing first.
pub(super) const GO: Driver = Driver {
    capabilities: COMMON
        .with(Capabilities::LOCAL_FILES)
        .with(Capabilities::DEPRECATE_EOF),
    preamble: &[],
};

/// PyMySQL in autocommit.
const PYMYSQL: Driver = Driver {
    capabilities: COMMON.with(Capabilities::LONG_AUTH),
    preamble: &["SET NAMES utf8mb4", "SET AUTOCOMMIT = 1"],
};

/// PyMySQL with a collation.
const PYMYSQL_COLLATED: Driver = Driver {
    capabilities: PYMYSQL.capabilities,
    preamble: &[
        "SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci",
        "SET AUTOCOMMIT = 1",
    ],
};

/// SQLAlchemy on mysqlclient, with the isolation level AUTOCOMMIT and a time zone.
const SQLALCHEMY: Driver = Driver {
    capabilities: MYSQLCLIENT,
    preamble: &[
        "SET NAMES utf8mb4",
        "SELECT VERSION()",
        "SELECT DATABASE()",
        "SELECT @@tx_isolation",
        "SELECT @@sql_mode",
        "SELECT @@lower_case_table_names",
        "SET AUTOCOMMIT = 1",
        "SET time_zone = '+00:00'",
    ],
};

/// Django on mysqlclient.
const DJANGO: Driver = Driver {
    capabilities: MYSQLCLIENT.with(Capabilities::FOUND_ROWS),
    preamble: &[
        "SET NAMES utf8mb4",
        "SET AUTOCOMMIT = 1",
        "SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null, \
         @@lower_case_table_names, CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL",
        "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
    ],
};

/// Connector/J.
const CONNECTOR_J: Driver = Driver {
    capabilities: COMMON
        .with(Capabilities::FOUND_ROWS)
        .with(Capabilities::PS_MULTI_RESULTS)
        .with(Capabilities::DEPRECATE_EOF),
    preamble: &[
        "/* mysql-connector-j-9.5.0 */SELECT  \
         @@session.auto_increment_increment AS auto_increment_increment, \
         @@character_set_client AS character_set_client, \
         @@character_set_connection AS character_set_connection, \
         @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, \
         @@collation_server AS collation_server, @@collation_connection AS collation_connection, \
         @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, \
         @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, \
         @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, \
         @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, \
         @@tx_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout",
        "SET character_set_results = NULL",
        "SET autocommit=1",
    ],
};

/// Clients of several applications. Each client takes the next one.
pub(super) const MIXED: [Driver; 6] = [PYMYSQL, PYMYSQL_COLLATED, SQLALCHEMY, DJANGO, CONNECTOR_J, GO];
