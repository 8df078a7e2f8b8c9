//! Counting allocator: the system's allocator with counters per thread.
//!
//! Memory that one thread allocates and another frees moves between their counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, with counters.
pub struct CountingAllocator;

thread_local! {
    // Constant and without a destructor, so touching them allocates nothing.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Allocations of this thread so far, and their bytes.
pub fn snapshot() -> (u64, u64) {
    (COUNT.get(), BYTES.get())
}

/// Live bytes of this thread, and their peak since [`reset_peak`].
pub fn live_bytes() -> (i64, i64) {
    (HELD.get(), PEAK.get())
}

/// Sets the peak to the live bytes.
pub fn reset_peak() {
    PEAK.set(HELD.get());
}

fn hold(more: i64) {
    let live_bytes = HELD.get().wrapping_add(more);
    HELD.set(live_bytes);
    PEAK.set(PEAK.get().max(live_bytes));
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
        hold(layout.size() as i64);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        record(layout.size());
        hold(layout.size() as i64);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        record(size.saturating_sub(layout.size()));
        hold(size as i64 - layout.size() as i64);
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: the caller's guarantees are passed on.
        unsafe { System.dealloc(old, layout) }
    }
}
