//! Members of a type, copied into the layout of `pteros_typesupport`, for distributions
//! whose introspection has another one.

use std::collections::HashMap;

use parking_lot::Mutex;
use pteros_typesupport::introspection;

use super::chosen::{MessageMembers, MessageTypeSupport, in_our_layout};

/// The deepest nesting of messages. rosidl refuses recursive types.
const DEPTH_MAX: usize = 64;

/// The members of a type in the layout of `pteros_typesupport`: one copy per type, which
/// is never freed, as rosidl's own. `None` without members, or nested too deeply.
///
/// # Safety
/// Null, or the members of a type of rosidl, which live for ever.
pub(crate) unsafe fn members(
    theirs: *const MessageMembers,
) -> Option<&'static introspection::MessageMembers> {
    static COPIES: Mutex<Option<HashMap<usize, &'static Copied>>> = Mutex::new(None);
    let mut copies = COPIES.lock();
    let copies = copies.get_or_insert_default();
    // SAFETY: as for this function.
    let copied = unsafe { copy_of(theirs, copies, DEPTH_MAX) }?;
    Some(&copied.0)
}

/// Copied members. They point to constants, which every thread may read.
struct Copied(introspection::MessageMembers);

// SAFETY: nothing writes to the members or to what they point to.
unsafe impl Sync for Copied {}

unsafe fn copy_of(
    theirs: *const MessageMembers,
    copies: &mut HashMap<usize, &'static Copied>,
    depth: usize,
) -> Option<&'static Copied> {
    let depth = depth.checked_sub(1)?;
    if let Some(known) = copies.get(&theirs.addr()) {
        return Some(known);
    }
    // SAFETY: as for `members`.
    let (mut ours, mut list) = unsafe { in_our_layout(theirs.as_ref()?) };
    for member in &mut list {
        // SAFETY: null, or a handle of this distribution.
        member.members = unsafe { handle_of(member.members.cast(), copies, depth) }?;
    }
    ours.member_count = u32::try_from(list.len()).ok()?;
    ours.members = list.leak().as_ptr();
    let ours: &'static Copied = Box::leak(Box::new(Copied(ours)));
    copies.insert(theirs.addr(), ours);
    Some(ours)
}

/// A handle of copied members; null for null.
unsafe fn handle_of(
    theirs: *const MessageTypeSupport,
    copies: &mut HashMap<usize, &'static Copied>,
    depth: usize,
) -> Option<*const introspection::MessageTypeSupport> {
    // SAFETY: as for this function.
    let Some(handle) = (unsafe { theirs.as_ref() }) else {
        return Some(std::ptr::null());
    };
    // SAFETY: the data of such a handle are MessageMembers.
    let members = unsafe { copy_of(handle.data.cast(), copies, depth) }?;
    let handle = introspection::MessageTypeSupport {
        typesupport_identifier: handle.typesupport_identifier,
        data: std::ptr::from_ref(&members.0).cast(),
        func: None,
        get_type_hash_func: None,
        get_type_description_func: std::ptr::null(),
        get_type_description_sources_func: std::ptr::null(),
    };
    Some(std::ptr::from_ref(Box::leak(Box::new(handle))))
}

/// An array of C.
///
/// # Safety
/// Null, or so many members, which live for ever.
pub(super) unsafe fn list<'a, T>(first: *const T, count: u32) -> &'a [T] {
    match first.is_null() {
        true => &[],
        // SAFETY: as for this function.
        false => unsafe { std::slice::from_raw_parts(first, count as usize) },
    }
}
