//! Other processes: started so that none outlives this one, placed on processors, and measured.

mod child;
mod cost;
mod cpus;
mod placement;
mod ports;
mod syscalls;

pub(crate) use child::{Child, Launch};
pub(crate) use cost::{
    ResourceUsage, Usage, forget_peak, peak_resident_bytes, resident_bytes, waited_for_processor,
};
pub(crate) use cpus::{allowed, least_busy};
pub(crate) use placement::{Placement, become_batch_on, move_to};
pub(crate) use ports::{free_port, listen_anywhere, raise_descriptor_limit};
pub(crate) use syscalls::{SyscallTrace, find_program};
