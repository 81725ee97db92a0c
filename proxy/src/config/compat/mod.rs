//! Configuration formats of other programs.
