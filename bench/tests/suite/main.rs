//! The binary as its users run it, against real servers and proxies.

mod common;
mod hostile;
mod load;
mod lockstep;
mod relay;
mod stale;
