//! The C ABI of rmw from ROS 2 Iron to Kilted: the introspection has the layout that
//! `pteros_typesupport` reads.

pub use pteros_typesupport::introspection::MessageMember;
use pteros_typesupport::introspection::MessageMembers;

/// The members of a type in the layout of `pteros_typesupport`, which is this one.
///
/// # Safety
/// Null, or the members of a type of rosidl, which live for ever.
pub(crate) unsafe fn members(theirs: *const MessageMembers) -> Option<&'static MessageMembers> {
    // SAFETY: as for this function.
    unsafe { theirs.as_ref() }
}

#[cfg(test)]
pub(crate) mod headers {
    pub(crate) const C_HEADERS: &[&str] =
        &["rmw/discovery_options.h", "rosidl_runtime_c/type_hash.h"];
    /// Structures of `abi.rs` that came with Lyrical.
    pub(crate) const ABSENT: &[&str] = &["ServiceEndpointInfo", "ServiceEndpointInfoArray"];
}
