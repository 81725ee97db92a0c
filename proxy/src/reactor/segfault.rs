//! The line that the log gets before SIGSEGV ends the process.
#![allow(unsafe_code)]

use std::{
    io,
    mem::zeroed,
    os::fd::RawFd,
    ptr::null_mut,
    sync::{
        OnceLock,
        atomic::{AtomicI32, Ordering::Relaxed},
    },
};

use libc::{c_int, c_void, sigaction, siginfo_t};

/// The descriptor of the log.
static LOG: AtomicI32 = AtomicI32::new(libc::STDERR_FILENO);
/// The previous action of the signal: Rust's runtime reports a stack that has overflowed.
static BEFORE: OnceLock<sigaction> = OnceLock::new();
const LINE: &[u8] = b"signal 11 (SIGSEGV) received, core dumping\n";

/// Has the name of SIGSEGV written to this descriptor. Called again, it names the one of a log that was
/// opened anew.
///
/// # Errors
/// The system refuses the handler.
pub fn log_segfaults(log: RawFd) -> io::Result<()> {
    LOG.store(log, Relaxed);
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // SAFETY: all zeroes are a valid `sigaction`, and the pointers are to values that live until the call
    // returns. The handler calls only functions that may be called at any time.
    let before = unsafe {
        let mut action: sigaction = zeroed();
        action.sa_sigaction = on_segfault as *const () as usize;
        // An overflowed stack has no room for the handler.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut before: sigaction = zeroed();
        if libc::sigaction(libc::SIGSEGV, &raw const action, &raw mut before) != 0 {
            return Err(io::Error::last_os_error());
        }
        before
    };
    // Another thread that was faster has the same.
    let _ = BEFORE.set(before);
    Ok(())
}

extern "C" fn on_segfault(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel passes a valid `info`. The descriptor may be closed by now: then nothing is written.
    unsafe {
        libc::write(LOG.load(Relaxed), LINE.as_ptr().cast(), LINE.len());
        // A fault is repeated when the handler returns. What another process has sent is not.
        let is_fault = (*info).si_code > 0;
        match BEFORE.get().filter(|_| is_fault) {
            Some(before) => _ = libc::sigaction(signal, before, null_mut()),
            None => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
        }
    }
}
