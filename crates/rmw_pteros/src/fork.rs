//! Fork detection: a context belongs to the process that opened it.
//!
//! A forked child has the sockets and shared memory of its parent, but none of the
//! parent's threads. Closing a context there would announce the parent's end. So in a
//! child, functions of an inherited entity fail, except that ending it succeeds and
//! changes nothing. A child may open its own context.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::{Failure, Outcome};

/// Forks between the first process that opened a context and this one.
static FORKS: AtomicU32 = AtomicU32::new(0);

type Handler = unsafe extern "C" fn();

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<Handler>,
        parent: Option<Handler>,
        child: Option<Handler>,
    ) -> c_int;
}

unsafe extern "C" fn note_child() {
    FORKS.fetch_add(1, Ordering::Relaxed);
}

/// Counts each fork from now on.
///
/// # Errors
/// The system has no memory left.
pub(crate) fn watch() -> Outcome {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    // SAFETY: the function only counts, and stays as long as this library.
    let code = *REGISTERED.get_or_init(|| unsafe { pthread_atfork(None, None, Some(note_child)) });
    match code {
        0 => Ok(()),
        code => Err(Failure::error(format!("pthread_atfork: error {code}"))),
    }
}

/// The process to which an entity belongs.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u32);

impl Origin {
    /// The current process.
    pub(crate) fn here() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// # Errors
    /// This process is a forked child of the entity's process.
    pub(crate) fn check(self) -> Outcome {
        if self.is_here() {
            Ok(())
        } else {
            Err(Failure::of_parent())
        }
    }
}
