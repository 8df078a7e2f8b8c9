//! Shutdown signals: Ctrl-C and SIGTERM as a descriptor that an event loop can wait
//! on.
//!
//! One handler per process, installed on first use. It writes an eventfd, then
//! calls the previously installed handler, so a host program (Python, a C++ main)
//! keeps its own behaviour. No signal is blocked: child processes inherit nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use crate::sys;
use crate::wake::Waker;

/// The process-wide request to shut down.
#[derive(Debug)]
pub struct ShutdownSignal {
    waker: Waker,
}

/// Installs the handler, once; later calls return the same object.
///
/// The first signal makes the descriptor readable and leaves the process running.
/// The second one kills it as usual, unless it is the same one again within 200 ms:
/// `timeout` signals its command twice. If a handler was installed before ours, that
/// one decides each time. SIGINT or SIGTERM that were ignored at this moment (a
/// script's background job) are handled from now on, as in every ROS node. A
/// handler installed by others *after* this call replaces ours. Thread-safe.
///
/// # Errors
/// The operating system's, in practice only "too many open files"; every later call
/// gives the same one.
pub fn shutdown_signal() -> io::Result<&'static ShutdownSignal> {
    static SIGNAL: OnceLock<Result<ShutdownSignal, (io::ErrorKind, String)>> = OnceLock::new();
    SIGNAL
        .get_or_init(|| {
            install().map_err(|e| (e.kind(), format!("handle SIGINT and SIGTERM: {e}")))
        })
        .as_ref()
        .map_err(|(kind, text)| io::Error::new(*kind, text.clone()))
}

fn install() -> io::Result<ShutdownSignal> {
    let waker = Waker::new()?;
    sys::install_signal_handlers(waker.as_fd().try_clone_to_owned()?)?;
    Ok(ShutdownSignal { waker })
}

impl ShutdownSignal {
    /// Whether a signal has arrived. No system call.
    pub fn is_requested(&self) -> bool {
        sys::signal_count() > 0
    }

    /// Requests a shutdown from inside the program, as a signal would.
    pub fn request(&self) {
        sys::count_request();
        self.waker.wake();
    }

    /// Clears past signals: the descriptor is not readable, and the next Ctrl-C
    /// counts as the first. For programs that go on after a spin was interrupted.
    pub fn clear(&self) {
        sys::forget_signals();
        self.waker.drain();
    }
}

impl AsFd for ShutdownSignal {
    /// Readable from the first signal on, for every poller that has it; do not
    /// read from it, use [`ShutdownSignal::clear`].
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
