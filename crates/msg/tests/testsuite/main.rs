//! The integration tests of messages, in one program; each module is a topic.

pub mod keys;
mod regressions;
mod typeobject;

use pteros_test_support::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
