//! Tables of cases, of which every row that fails is reported.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Checks each row, and panics at the end if any has failed. The message of each failure is printed as it
/// happens.
pub(crate) fn each_row<Row: Debug>(rows: impl IntoIterator<Item = Row>, mut check: impl FnMut(&Row)) {
    let fails = |row: &Row| catch_unwind(AssertUnwindSafe(|| check(row))).is_err();
    let failed: Vec<Row> = rows.into_iter().filter(fails).collect();
    assert!(failed.is_empty(), "{} rows failed: {failed:#?}", failed.len());
}
