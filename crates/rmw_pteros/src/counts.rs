//! Counters of entities, for tests that state the cost of a message or what was dropped.

use crate::abi::{Publisher, Subscription};

/// How often a publisher serialized a message since it was created. CDR that a
/// subscription of the context makes of a shared message, when it takes it, does not
/// count. `None` if the handle is not one of this plug-in. Any thread may call it.
///
/// # Safety
/// `publisher` is null or a publisher handle, which is not destroyed meanwhile.
pub unsafe fn serialized_count(publisher: *const Publisher) -> Option<u64> {
    // SAFETY: as for this function.
    let state = unsafe { crate::publisher::state(publisher) };
    Some(state.ok()?.writer.counts().serialized)
}

/// Taken messages that were not of the subscription's type, and were dropped. `None` if
/// the handle is not one of this plug-in. Any thread may call it.
///
/// # Safety
/// `subscription` is null or a subscription handle, which is not destroyed meanwhile.
pub unsafe fn undecodable_count(subscription: *const Subscription) -> Option<u64> {
    // SAFETY: as for this function.
    let state = unsafe { crate::subscription::state(subscription) };
    Some(state.ok()?.waiter.reader.counts().undecodable)
}
