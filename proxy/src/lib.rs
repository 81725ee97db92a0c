//! # proxima
pub mod near;
