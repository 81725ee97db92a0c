//! The files of the console.

use super::File;

macro_rules! file {
    ($path:literal) => {
        File {
            path: $path,
            bytes: include_bytes!(concat!("../../../console/", $path)),
        }
    };
}

/// The page itself.
pub(super) const INDEX: File = file!("index.html");

/// What it is made of.
pub(super) const FILES: &[File] = &[
    file!("act.js"),
    file!("address.js"),
    file!("ask.js"),
    file!("chart.js"),
    file!("cpus.js"),
    file!("drains.js"),
    file!("drawing.js"),
    file!("element.js"),
    file!("filters.js"),
    file!("format.js"),
    file!("frame.js"),
    file!("history.js"),
    file!("layout.js"),
    file!("machine.css"),
    file!("machine.js"),
    file!("machine_drawing.js"),
    file!("machine_tables.js"),
    file!("main.js"),
    file!("merge.js"),
    file!("overview/by_hand.js"),
    file!("overview/configuration.js"),
    file!("overview/figures.js"),
    file!("overview/hot_keys.js"),
    file!("overview/listeners.js"),
    file!("overview/out.js"),
    file!("overview/pools.js"),
    file!("overview/process.js"),
    file!("page.css"),
    file!("parts.css"),
    file!("report.js"),
    file!("sharing.js"),
    file!("source.js"),
    file!("state.js"),
    file!("store.js"),
    file!("stream.js"),
    file!("table.js"),
    file!("ticker.js"),
    file!("timeline.js"),
    file!("views.js"),
    file!("views/agent.js"),
    file!("views/events.js"),
    file!("views/fleet.js"),
    file!("views/mysql.js"),
    file!("views/near.js"),
    file!("views/overview.js"),
    file!("views/servers.js"),
    file!("views/slow.js"),
    file!("views/tree.js"),
    file!("visible_rows.js"),
    file!("way.js"),
];
