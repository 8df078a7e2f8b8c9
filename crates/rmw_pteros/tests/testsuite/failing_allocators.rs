//! Allocators of the caller that fail: at each allocation once, with every function that
//! uses one. The function fails, what it had allocated is freed, and nothing crashes.

use std::cell::{Cell, RefCell};
use std::ffi::c_void;
use std::ptr::null_mut;

use rmw_pteros_cpp::abi::{
    Allocator, InitOptions, MessageTypeSupport, NamesAndTypes, NetworkFlowEndpoints, Ret,
    SerializedMessage, TopicEndpointInfoArray, ret,
};

use crate::harness::*;

unsafe extern "C" {
    fn rmw_init_options_copy(from: *const InitOptions, to: *mut InitOptions) -> Ret;
    fn rmw_serialize(
        message: *const c_void,
        type_support: *const MessageTypeSupport,
        serialized: *mut SerializedMessage,
    ) -> Ret;
}

/// An allocator that succeeds so many times, and knows what it has given.
#[derive(Default)]
struct Scarce {
    left: Cell<usize>,
    live: RefCell<Vec<usize>>,
}

impl Scarce {
    fn allocator(&self) -> Allocator {
        Allocator {
            allocate: Some(allocate),
            deallocate: Some(deallocate),
            reallocate: Some(reallocate),
            zero_allocate: Some(zero_allocate),
            state: (&raw const *self).cast_mut().cast(),
        }
    }

    fn give(&self, memory: impl FnOnce() -> *mut c_void) -> *mut c_void {
        let Some(left) = self.left.get().checked_sub(1) else {
            return null_mut();
        };
        self.left.set(left);
        let memory = memory();
        self.live.borrow_mut().push(memory as usize);
        memory
    }

    fn forget(&self, memory: *mut c_void) {
        let mut live = self.live.borrow_mut();
        let at = live.iter().position(|given| *given == memory as usize);
        live.swap_remove(at.expect("freed memory is from this allocator"));
    }

    /// Frees what a function that succeeded has left to its caller.
    fn free_all(&self) {
        for memory in self.live.take() {
            free_memory(memory as *mut c_void);
        }
    }
}

unsafe extern "C" fn allocate(bytes: usize, state: *mut c_void) -> *mut c_void {
    // SAFETY: the state is a `Scarce`, and C's allocator is as sound as ever.
    unsafe { (*state.cast::<Scarce>()).give(|| (allocator().allocate.unwrap())(bytes, null_mut())) }
}

unsafe extern "C" fn zero_allocate(count: usize, bytes: usize, state: *mut c_void) -> *mut c_void {
    let zeroed = allocator().zero_allocate.unwrap();
    // SAFETY: as above.
    unsafe { (*state.cast::<Scarce>()).give(|| zeroed(count, bytes, null_mut())) }
}

unsafe extern "C" fn deallocate(memory: *mut c_void, state: *mut c_void) {
    if memory.is_null() {
        return;
    }
    // SAFETY: as above.
    unsafe { (*state.cast::<Scarce>()).forget(memory) };
    free_memory(memory);
}

unsafe extern "C" fn reallocate(
    memory: *mut c_void,
    bytes: usize,
    state: *mut c_void,
) -> *mut c_void {
    // SAFETY: as above.
    let scarce = unsafe { &*state.cast::<Scarce>() };
    let old = memory as usize;
    let resize = allocator().reallocate.unwrap();
    // SAFETY: as above; `memory` is null or from this allocator.
    let grown = scarce.give(|| unsafe { resize(memory, bytes, null_mut()) });
    if !grown.is_null() && old != 0 {
        scarce.forget(old as *mut c_void);
    }
    grown
}

/// Calls `function` with allocators that allow 0, 1, 2 … allocations, until it succeeds.
/// Returns how many it needs.
pub fn fails_cleanly_until_enough(name: &str, mut function: impl FnMut(Allocator) -> Ret) -> usize {
    for allowed in 0..1_000 {
        let scarce = Scarce::default();
        scarce.left.set(allowed);
        let code = function(scarce.allocator());
        if code == ret::OK {
            scarce.free_all();
            return allowed;
        }
        assert_eq!(code, ret::BAD_ALLOC, "{name} with {allowed} allocations");
        let kept = scarce.live.borrow().len();
        assert_eq!(kept, 0, "{name} leaks after {allowed} allocations");
    }
    panic!("{name} never succeeds");
}

#[test]
fn a_function_whose_allocator_fails_says_so_and_frees_what_it_has() {
    let party = Party::new(unused_domain());
    let ty = Text::type_support();
    let publisher = party.publisher(ty);
    let node = party.node();
    let needed = fails_cleanly_until_enough("topics", |mut allocator| {
        let mut out: NamesAndTypes = zeroed();
        // SAFETY: valid arguments, and a structure that is zero.
        unsafe { rmw_get_topic_names_and_types(node, &raw mut allocator, false, &raw mut out) }
    });
    assert!(needed >= 4, "names and types of a topic: {needed}");
    let needed = fails_cleanly_until_enough("publishers", |mut allocator| {
        let mut out: TopicEndpointInfoArray = zeroed();
        let (name, out) = (c"/t".as_ptr(), &raw mut out);
        // SAFETY: valid arguments, and a structure that is zero.
        unsafe { rmw_get_publishers_info_by_topic(node, &raw mut allocator, name, false, out) }
    });
    assert!(needed >= 4, "one publisher: {needed}");
    let needed = fails_cleanly_until_enough("network flows", |allocator| {
        let mut out: NetworkFlowEndpoints = zeroed();
        let allocator = &raw const allocator;
        // SAFETY: valid arguments, and a structure that is zero.
        unsafe { rmw_publisher_get_network_flow_endpoints(publisher, allocator, &raw mut out) }
    });
    assert!(needed >= 1);
    let needed = fails_cleanly_until_enough("serialization", |allocator| {
        let message = Text::new(7, &"x".repeat(10_000));
        let mut out = SerializedMessage {
            allocator,
            ..zeroed()
        };
        // SAFETY: valid arguments, and a structure that is zero.
        unsafe { rmw_serialize((&raw const message).cast(), ty, &raw mut out) }
    });
    assert!(needed >= 1);
    // SAFETY: the order of calls is that of rcl.
    let needed = fails_cleanly_until_enough("init options", |scarce| unsafe {
        let mut options: InitOptions = zeroed();
        assert_eq!(rmw_init_options_init(&mut options, allocator()), ret::OK);
        options.enclave = c"/arm".as_ptr().cast_mut();
        options.allocator = scarce;
        let mut copy: InitOptions = zeroed();
        let code = rmw_init_options_copy(&raw const options, &raw mut copy);
        assert!(code == ret::OK || copy.implementation_identifier.is_null());
        options.allocator = allocator();
        options.enclave = null_mut();
        assert_eq!(rmw_init_options_fini(&mut options), ret::OK);
        code
    });
    assert!(needed >= 1);
    party.destroy_publisher(publisher);
}
