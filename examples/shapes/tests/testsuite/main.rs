//! The integration tests of the example: one program, a module for each subject.
#![allow(clippy::disallowed_methods, reason = "other vendors' programs")]

use std::sync::atomic::{AtomicU32, Ordering};

use pteros_test_support::peer;

mod sets;
mod vendors;

/// A domain of its own for each test. Their ports stay below the ephemeral ones.
fn domain() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    1 + NEXT.fetch_add(1, Ordering::Relaxed) % 100
}
