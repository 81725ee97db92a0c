//! The tables.

use clap::ValueEnum;
use serde::Serialize;

/// A table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Table {
    /// A connection with a login for each read, 16 at once
    Logins,
    /// Each read prepared, executed and closed, as by go-sql-driver's defaults, on 16 connections
    Prepares,
    /// A thousand clients of four drivers in six states, each of which asks once a second
    Clients,
    /// Ten thousand clients that are logged in and ask nothing
    Idle,
}
