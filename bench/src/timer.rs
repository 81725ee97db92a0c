//! A timer that wakes a poll. mio counts time-outs in milliseconds, and requests are due in microseconds.

use std::{
    os::fd::{AsRawFd, OwnedFd},
    time::Duration,
};

use anyhow::Result;
use mio::{Interest, Registry, Token, unix::SourceFd};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};

/// A timer. Its event says no more than that the time is over.
pub(crate) struct Timer(OwnedFd);

impl Timer {
    /// A timer whose events have this token.
    pub(crate) fn new(registry: &Registry, token: Token) -> Result<Self> {
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        registry.register(&mut SourceFd(&timer.as_raw_fd()), token, Interest::READABLE)?;
        Ok(Self(timer))
    }

    /// Wakes the poll after `delay`, and no longer when it was told to before.
    pub(crate) fn arm(&self, delay: Duration) -> Result<()> {
        // 0 would disarm the timer.
        let delay = delay.max(Duration::from_nanos(1));
        let value = Timespec {
            tv_sec: delay.as_secs() as i64,
            tv_nsec: i64::from(delay.subsec_nanos()),
        };
        let once = Itimerspec {
            it_interval: Timespec {
                tv_sec: 0,
                tv_nsec: 0,
            },
            it_value: value,
        };
        timerfd_settime(&self.0, TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }
}
