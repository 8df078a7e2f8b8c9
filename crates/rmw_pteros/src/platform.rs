//! The platform of contexts: this machine, unless a test opens them on another one.

use std::cell::RefCell;
use std::sync::Arc;

use pteros_runtime::platform::{Platform, SignalHandling, SystemPlatform};

thread_local! {
    /// Only `rmw_init` and [`with_platform`] touch it: shutdown may run when the
    /// thread's own variables are gone.
    static OF_THREAD: RefCell<Option<Arc<dyn Platform>>> = const { RefCell::new(None) };
}

/// Calls `open`, within which contexts that this thread initializes are on `platform`,
/// for tests that count what a context does.
pub fn with_platform<R>(platform: Arc<dyn Platform>, open: impl FnOnce() -> R) -> R {
    let before = OF_THREAD.replace(Some(platform));
    let result = open();
    OF_THREAD.set(before);
    result
}

/// The platform of a context that this thread initializes now.
pub(crate) fn current() -> Arc<dyn Platform> {
    let given = OF_THREAD.with_borrow(Clone::clone);
    // Signals are rcl's: it shuts contexts down, after callbacks that still wait and publish.
    let system = || SystemPlatform::with_signals(SignalHandling::Ignore);
    given.unwrap_or_else(|| Arc::new(system()))
}
