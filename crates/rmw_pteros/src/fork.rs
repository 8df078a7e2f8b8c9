//! Forked children: a context belongs to the process that opened it.
//!
//! Its sockets and shared memory are that process's, and its threads are not in a child.
//! A child that closed a context would take leave in its parent's name. So functions of
//! an inherited entity fail in a child. Those that end one succeed and change nothing. A
//! child may open a context of its own.

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

/// Notes each fork from now on.
///
/// # Errors
/// The system has no memory for that.
pub(crate) fn watch() -> Outcome {
    static REGISTERED: OnceLock<c_int> = OnceLock::new();
    // SAFETY: the function only counts, and stays as long as this library.
    let code = *REGISTERED.get_or_init(|| unsafe { pthread_atfork(None, None, Some(note_child)) });
    match code {
        0 => Ok(()),
        code => Err(Failure::error(format!("pthread_atfork: error {code}"))),
    }
}

/// The process that an entity is of.
#[derive(Clone, Copy)]
pub(crate) struct Origin(u32);

impl Origin {
    /// This process.
    pub(crate) fn here() -> Self {
        Self(FORKS.load(Ordering::Relaxed))
    }

    pub(crate) fn is_here(self) -> bool {
        self.0 == FORKS.load(Ordering::Relaxed)
    }

    /// # Errors
    /// This process is a child of that one.
    pub(crate) fn check(self) -> Outcome {
        if self.is_here() {
            Ok(())
        } else {
            Err(Failure::of_parent())
        }
    }
}
