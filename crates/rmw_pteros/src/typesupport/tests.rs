//! Tests of type support handles and of messages within a context.

use std::ffi::c_void;
#[cfg(not(distribution = "humble"))]
use std::ptr::null;

use pteros_msg::cdr::Representation;
use pteros_runtime::sample::SharedValue;

use pteros_typesupport::introspection::MessageMember;

use super::*;
use crate::shared_message::SharedMessage;

pteros_test_support::message_members!();

/// As rosidl's size function of a sequence in C.
unsafe extern "C" fn sequence_size(sequence: *const c_void) -> usize {
    // SAFETY: data, size and capacity.
    unsafe { *sequence.cast::<usize>().add(1) }
}

#[test]
fn two_first_users_of_a_type_get_the_same_program() {
    use parking_lot::Condvar;
    static INSIDE: Mutex<usize> = Mutex::new(0);
    static BOTH: Condvar = Condvar::new();
    /// Returns once both threads compile the type.
    unsafe extern "C" fn size(sequence: *const c_void) -> usize {
        let mut inside = INSIDE.lock();
        *inside += 1;
        BOTH.notify_all();
        while *inside < 2 {
            let waited = BOTH.wait_for(&mut inside, std::time::Duration::from_secs(20));
            if waited.timed_out() {
                break;
            }
        }
        // SAFETY: as for this function.
        unsafe { sequence_size(sequence) }
    }
    let numbers = MessageMember {
        is_array: true,
        size_function: Some(size),
        ..member(c"numbers", 15, 0)
    };
    // As those of rosidl, they are never freed.
    let list = Box::leak(Box::new([numbers]));
    let members = Box::leak(Box::new(members(c"Numbers", 24, list)));
    let address = std::ptr::from_ref(members).expose_provenance();
    let compile = move || {
        let members = std::ptr::with_exposed_provenance::<MessageMembers>(address);
        // SAFETY: the members above, which nothing changes.
        compiled(unsafe { &*members }, Language::C).unwrap().program
    };
    #[expect(clippy::disallowed_methods, reason = "two users are two threads")]
    let other = std::thread::spawn(compile);
    let one = compile();
    assert!(Arc::ptr_eq(&one, &other.join().unwrap()));
    assert!(Arc::ptr_eq(&one, &compile()), "and later ones, too");
}

/// By the type hash, which Humble lacks.
#[cfg(not(distribution = "humble"))]
#[test]
fn a_handle_is_looked_up_once_unless_another_type_takes_its_place() {
    use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
    static LOOKED_UP: AtomicUsize = AtomicUsize::new(0);
    static VERSION: AtomicU8 = AtomicU8::new(1);
    unsafe extern "C" fn find(
        handle: *const abi::MessageTypeSupport,
        _: *const c_char,
    ) -> *const abi::MessageTypeSupport {
        LOOKED_UP.fetch_add(1, Ordering::Relaxed);
        handle
    }
    unsafe extern "C" fn hash(_: *const abi::MessageTypeSupport) -> *const abi::TopicTypeHash {
        Box::leak(Box::new(abi::TopicTypeHash {
            version: 1,
            value: [VERSION.load(Ordering::Relaxed); 32],
        }))
    }
    let list = [member(c"value", 2, 0)];
    let members = members(c"Once", 8, &list);
    let mut handle = abi::MessageTypeSupport {
        typesupport_identifier: null(),
        data: std::ptr::from_ref(&members).cast(),
        func: Some(find),
        get_type_hash_func: Some(hash),
        get_type_description_func: null(),
        get_type_description_sources_func: null(),
    };
    for (version, looked_up) in [(1, 1), (1, 1), (2, 2), (2, 2)] {
        VERSION.store(version, Ordering::Relaxed);
        // SAFETY: a handle of a type.
        let program = unsafe { super::program(&raw const handle) }.unwrap();
        assert_eq!(program.size_of, 8);
        assert_eq!(LOOKED_UP.load(Ordering::Relaxed), looked_up);
    }
    // A handle that was changed is refused, as if it had not been used before.
    handle.func = None;
    // SAFETY: as above.
    assert!(unsafe { super::program(&raw const handle) }.is_err());
}

#[test]
fn a_message_that_is_kept_for_late_joiners_does_not_keep_its_cdr() {
    let list = [member(c"n", 13, 0)];
    let members = members(c"Number", 4, &list);
    // SAFETY: the members are those of an i32.
    let program = Arc::new(unsafe { Program::compile(&members, Language::C) }.unwrap());
    let payloads = |is_kept| {
        // SAFETY: an i32.
        let copy = unsafe { SharedMessage::copy_of(&program, pointer(&mut 7_i32), is_kept) };
        let copy = copy.unwrap();
        assert_eq!(copy.size_bytes(), 8);
        [(); 2].map(|()| copy.payload(Representation::Xcdr1))
    };
    let [first, second] = payloads(false);
    assert_eq!(first, [0, 1, 0, 0, 7, 0, 0, 0][..]);
    assert_eq!(first.as_ptr(), second.as_ptr(), "serialized once for all");
    let [first, second] = payloads(true);
    assert_eq!(first, second);
    assert_ne!(first.as_ptr(), second.as_ptr());
}
