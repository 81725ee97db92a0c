//! A stack that is large enough for the deepest nesting of calls.

use std::{panic::resume_unwind, thread};

use crate::config::Diagnostic;

/// Bytes of stack: several times of what an expansion needs that nests to the limit. The threads that read
/// configurations have 2 MiB.
const STACK: usize = 16 << 20;

/// Calls a function on a thread that has this stack.
pub(super) fn with_room<T: Send>(
    work: impl FnOnce() -> Result<T, Diagnostic> + Send,
) -> Result<T, Diagnostic> {
    thread::scope(|scope| {
        let thread = thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        match thread.map(|thread| thread.join()) {
            Ok(Ok(done)) => done,
            Ok(Err(panic)) => resume_unwind(panic),
            Err(error) => Err(Diagnostic::whole(format!(
                "there is no thread to expand macros: {error}"
            ))),
        }
    })
}
