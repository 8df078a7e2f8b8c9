//! Counting allocator: the system's allocator with counters per thread.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counters.
pub struct CountingAllocator;

thread_local! {
    // Constant and without a destructor, so touching them allocates nothing.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
}

/// Allocations of this thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Allocations {
    pub count: u64,
    pub bytes: u64,
}

/// Allocations of this thread within `work`, and its result.
pub fn count<R>(work: impl FnOnce() -> R) -> (Allocations, R) {
    let (count, bytes) = (COUNT.get(), BYTES.get());
    let result = work();
    let made = Allocations {
        count: COUNT.get() - count,
        bytes: BYTES.get() - bytes,
    };
    (made, result)
}

fn record(bytes: usize) {
    COUNT.set(COUNT.get() + 1);
    BYTES.set(BYTES.get() + bytes as u64);
}

// SAFETY: every call is passed to the system's allocator unchanged; the counters
// beside it belong to this thread.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record(size.saturating_sub(layout.size()));
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(old, layout) }
    }
}
