//! Counters of entities, for tests of the cost of a message and of dropped messages.

use crate::abi::{Publisher, Subscription};

/// How often a publisher serialized a message since it was created. Serialization by a
/// subscription of the context, when it takes a shared message, does not count. `None` if
/// the handle belongs to another middleware. Any thread may call it.
///
/// # Safety
/// `publisher` is null or a publisher handle, which is not destroyed meanwhile.
pub unsafe fn serialized_count(publisher: *const Publisher) -> Option<u64> {
    // SAFETY: as for this function.
    let state = unsafe { crate::publisher::state(publisher) };
    Some(state.ok()?.writer.counts().serialized)
}

/// Taken messages that were dropped because they were not of the subscription's type.
/// `None` if the handle belongs to another middleware. Any thread may call it.
///
/// # Safety
/// `subscription` is null or a subscription handle, which is not destroyed meanwhile.
pub unsafe fn undecodable_count(subscription: *const Subscription) -> Option<u64> {
    // SAFETY: as for this function.
    let state = unsafe { crate::subscription::state(subscription) };
    Some(state.ok()?.waiter.reader.counts().undecodable)
}
