//! The table of a run. Each read names its row, and each update adds one to a number, so that an update that
//! is lost or made twice shows in the sum.

/// Rows.
pub(super) const COUNT: u32 = 10_000;

/// The statement that makes the table.
pub(super) const CREATE: &str = "CREATE TABLE visitors \
     (id INT PRIMARY KEY, name VARCHAR(40) NOT NULL, visits INT NOT NULL) ENGINE=InnoDB";
/// The statement that makes its rows.
pub(super) const FILL: &str =
    "INSERT INTO visitors SELECT seq, CONCAT('visitor ', seq), 0 FROM seq_0_to_9999";
/// The statement that counts the updates.
pub(super) const SUM: &str = "SELECT SUM(visits) FROM visitors";
/// The statement that reads a row, to be prepared.
pub(super) const PREPARED: &str = "SELECT name FROM visitors WHERE id = ?";

/// The statement that reads a row.
pub(super) fn read(number: u32) -> String {
    format!("SELECT name FROM visitors WHERE id = {number}")
}

/// The statement that changes a row.
pub(super) fn update(number: u32) -> String {
    format!("UPDATE visitors SET visits = visits + 1 WHERE id = {number}")
}

/// The name in a row.
pub(super) fn name(number: u32) -> String {
    format!("visitor {number}")
}
