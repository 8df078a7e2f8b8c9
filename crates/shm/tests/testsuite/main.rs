//! The integration tests of shared memory, in one program; each module is a topic.

mod crash;
mod discovery_log;
mod steady;
mod transport;

use pteros_test_support::allocations::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;
