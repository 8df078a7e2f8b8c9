//! Counts what each thread allocates: the system's allocator with some numbers
//! per thread beside it. Memory that one thread takes and another lets go moves
//! between their counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counting.
pub struct Counting;

thread_local! {
    // Constant and without a destructor, so touching them allocates nothing.
    static COUNT: Cell<u64> = const { Cell::new(0) };
    static BYTES: Cell<u64> = const { Cell::new(0) };
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

/// Allocations of this thread so far, and their bytes.
#[allow(dead_code, reason = "not every test asks")]
pub fn so_far() -> (u64, u64) {
    (COUNT.get(), BYTES.get())
}

/// Bytes this thread holds, and the most since [`forget_peak`].
#[allow(dead_code, reason = "not every test asks")]
pub fn held() -> (i64, i64) {
    (HELD.get(), PEAK.get())
}

/// The peak is what is held now.
#[allow(dead_code, reason = "not every test asks")]
pub fn forget_peak() {
    PEAK.set(HELD.get());
}

fn hold(more: i64) {
    let held = HELD.get().wrapping_add(more);
    HELD.set(held);
    PEAK.set(PEAK.get().max(held));
}

fn note(bytes: usize) {
    COUNT.set(COUNT.get() + 1);
    BYTES.set(BYTES.get() + bytes as u64);
}

// SAFETY: every call is handed to the system's allocator unchanged; the numbers
// beside it are this thread's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        hold(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        hold(layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size.saturating_sub(layout.size()));
        hold(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        hold(-(layout.size() as i64));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(old, layout) }
    }
}
