//! Platform of contexts: the host, unless a test sets another one.

use std::cell::RefCell;
use std::sync::Arc;

use pteros_runtime::platform::{Platform, SignalHandling, SystemPlatform};

thread_local! {
    /// Only `rmw_init` and [`with_platform`] access it, because shutdown may run after
    /// the thread-local values were destroyed.
    static OF_THREAD: RefCell<Option<Arc<dyn Platform>>> = const { RefCell::new(None) };
}

/// Calls `open` with `platform` for the contexts that this thread initializes meanwhile.
/// For tests that count operations of a context.
pub fn with_platform<R>(platform: Arc<dyn Platform>, open: impl FnOnce() -> R) -> R {
    let before = OF_THREAD.replace(Some(platform));
    let result = open();
    OF_THREAD.set(before);
    result
}

/// The platform for a context that this thread initializes now.
pub(crate) fn current() -> Arc<dyn Platform> {
    let given = OF_THREAD.with_borrow(Clone::clone);
    // rcl handles signals: it shuts contexts down after its callbacks, which may still
    // publish.
    let system = || SystemPlatform::with_signals(SignalHandling::Ignore);
    given.unwrap_or_else(|| Arc::new(system()))
}
