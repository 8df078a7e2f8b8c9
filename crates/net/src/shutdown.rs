//! Shutdown signals: Ctrl-C and SIGTERM as a descriptor that an event loop can wait
//! on.
//!
//! One handler per process, which a program asks for: [`shutdown_signal`] installs it for
//! both signals, [`handle_shutdown_signals`] for those of a choice. It writes an eventfd,
//! then calls the previously installed handler, so a host program (Python, a C++ main)
//! keeps its own behaviour. No signal is blocked: child processes inherit nothing. A
//! library that a host loads uses [`shutdown_request`], which installs nothing.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Mutex, OnceLock, PoisonError};

use crate::sys;
use crate::wake::Waker;

/// The process-wide request to shut down.
#[derive(Debug)]
pub struct ShutdownSignal {
    waker: Waker,
}

/// The signals that request a shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ShutdownSignals {
    /// SIGINT, as Ctrl-C sends it.
    pub interrupt: bool,
    /// SIGTERM.
    pub terminate: bool,
}

/// A signal that has requested the shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedSignal {
    /// SIGINT, as Ctrl-C sends it.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl ReceivedSignal {
    /// `SIGINT` or `SIGTERM`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        }
    }

    /// Its number, as in `kill -l`.
    pub fn number(self) -> u8 {
        match self {
            Self::Interrupt => 2,
            Self::Terminate => 15,
        }
    }
}

/// The signals that have our handler, in the order of `sys`.
static HANDLED: Mutex<[bool; 2]> = Mutex::new([false; 2]);

/// Installs the handler for both signals, once; later calls return the same object.
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
    static INSTALLED: OnceLock<Result<(), (io::ErrorKind, String)>> = OnceLock::new();
    let both = ShutdownSignals {
        interrupt: true,
        terminate: true,
    };
    let installed = INSTALLED.get_or_init(|| {
        sys::end_at_second_signal();
        handle_shutdown_signals(both).map_err(|e| (e.kind(), e.to_string()))
    });
    match installed {
        Ok(()) => shutdown_request(),
        Err((kind, text)) => Err(io::Error::new(*kind, text.clone())),
    }
}

/// Installs the handler for these signals, and puts back the handlers that the others had
/// before ours. A signal that has ours already keeps it. Thread-safe.
///
/// No signal ends the process, as with the handlers of rcl, unless the program has called
/// [`shutdown_signal`]: its own shutdown may take long.
///
/// # Errors
/// As [`shutdown_signal`].
pub fn handle_shutdown_signals(signals: ShutdownSignals) -> io::Result<()> {
    let failed = |e: io::Error| {
        let text = format!("handle SIGINT and SIGTERM: {e}");
        io::Error::new(e.kind(), text)
    };
    shutdown_request().map_err(failed)?;
    let mut handled = HANDLED.lock().unwrap_or_else(PoisonError::into_inner);
    let wanted = [signals.interrupt, signals.terminate];
    for (slot, (is_handled, wanted)) in handled.iter_mut().zip(wanted).enumerate() {
        match (*is_handled, wanted) {
            (false, true) => sys::install_signal_handler(slot).map_err(failed)?,
            (true, false) => sys::restore_signal_handler(slot).map_err(failed)?,
            _ => {}
        }
        *is_handled = wanted;
    }
    Ok(())
}

/// The request to shut down. Installs no handler: without one of the program, only
/// [`ShutdownSignal::request`] makes it. Thread-safe.
///
/// # Errors
/// As [`shutdown_signal`].
pub fn shutdown_request() -> io::Result<&'static ShutdownSignal> {
    static REQUEST: OnceLock<Result<ShutdownSignal, (io::ErrorKind, String)>> = OnceLock::new();
    REQUEST
        .get_or_init(|| ShutdownSignal::new().map_err(|e| (e.kind(), e.to_string())))
        .as_ref()
        .map_err(|(kind, text)| io::Error::new(*kind, text.clone()))
}

impl ShutdownSignal {
    fn new() -> io::Result<Self> {
        let waker = Waker::new()?;
        sys::notify_of_signals(waker.as_fd().try_clone_to_owned()?);
        Ok(Self { waker })
    }

    /// Whether a signal has arrived. No system call.
    pub fn is_requested(&self) -> bool {
        sys::signal_count() > 0
    }

    /// The first signal that has arrived since the last [`ShutdownSignal::clear`]. None if
    /// only the program itself has requested the shutdown. No system call.
    pub fn received(&self) -> Option<ReceivedSignal> {
        let number = sys::first_signal_number();
        let both = [ReceivedSignal::Interrupt, ReceivedSignal::Terminate];
        both.into_iter().find(|signal| signal.number() == number)
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
