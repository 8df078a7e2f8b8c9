//! Lifecycle of structs that the plug-in creates and destroys itself, for messages within
//! a process.
//!
//! A C struct is initialized with zeros, which are empty strings and sequences. rosidl's
//! fini functions accept them. Its init functions do not report a failed allocation, so
//! they are not used. A C++ struct is initialized by its constructor.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use crate::failure::{Failure, Outcome};
use crate::introspection::MessageMembers;
use crate::members::Language;
use crate::program::Program;

/// `rosidl_runtime_cpp::MessageInitialization::SKIP`: numbers stay uninitialized.
const INITIALIZE_NO_NUMBERS: u32 = 1;

/// Alignment of a struct, bytes: that of `malloc`, which suffices for every member type
/// of rosidl.
const STRUCT_ALIGN: usize = 16;

/// How to create and destroy a struct of one type.
#[derive(Clone, Copy)]
pub(super) enum Lifecycle {
    /// Only numbers: neither is needed.
    Flat,
    /// Initialized with zeros.
    C { finalize: Finalize },
    /// Initialized with zeros, and finalized by [`Program::finalize`].
    KnownC,
    /// It has a constructor and a destructor.
    Cpp {
        initialize: Initialize,
        finalize: Finalize,
    },
}

type Initialize = unsafe extern "C" fn(*mut c_void, u32);
type Finalize = unsafe extern "C" fn(*mut c_void);

impl Lifecycle {
    /// `None` if the typesupport lacks a function that the type needs.
    pub(super) fn of(members: &MessageMembers, language: Language, is_flat: bool) -> Option<Self> {
        if is_flat {
            return Some(Self::Flat);
        }
        let finalize = members.fini_function?;
        Some(match language {
            Language::C => Self::C { finalize },
            Language::Cpp => Self::Cpp {
                initialize: members.init_function?,
                finalize,
            },
        })
    }
}

/// An initialized struct of a message type, on the heap.
pub struct Struct {
    program: Arc<Program>,
    lifecycle: Lifecycle,
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: the memory belongs to the value, and shared references only read it.
unsafe impl Send for Struct {}
// SAFETY: as above.
unsafe impl Sync for Struct {}

impl Struct {
    /// Copies the user's struct. Allocates the struct, and memory of its strings and
    /// sequences.
    ///
    /// # Safety
    /// `message` points to an initialized struct of the type.
    ///
    /// # Errors
    /// As [`Program::copy`]; or there is no memory, or the typesupport has no functions
    /// to make such a struct.
    pub unsafe fn copy_of(program: &Arc<Program>, message: *const c_void) -> Outcome<Self> {
        let copy = Self::new(program)?;
        // SAFETY: as for this function; the new struct is ours alone.
        unsafe { program.copy(message, copy.memory.as_ptr().cast()) }?;
        Ok(copy)
    }

    /// Makes a struct for [`Program::copy`] or [`Program::decode`]. Strings and sequences
    /// are empty, numbers of C are zero, those of C++ uninitialized.
    ///
    /// # Errors
    /// There is no memory, or the typesupport has no functions to make such a struct.
    pub fn new(program: &Arc<Program>) -> Outcome<Self> {
        let lifecycle = program
            .lifecycle
            .ok_or_else(|| Failure::error("the type support cannot make a message"))?;
        let layout = Layout::from_size_align(program.size_of.max(1), STRUCT_ALIGN)
            .map_err(Failure::error)?;
        // SAFETY: the layout has a size. The destructor runs on an initialized struct.
        unsafe {
            let memory = match lifecycle {
                Lifecycle::C { .. } | Lifecycle::KnownC => alloc_zeroed(layout),
                Lifecycle::Flat if program.is_known => alloc_zeroed(layout),
                Lifecycle::Flat | Lifecycle::Cpp { .. } => alloc(layout),
            };
            let memory = NonNull::new(memory).ok_or_else(Failure::bad_alloc)?;
            if let Lifecycle::Cpp { initialize, .. } = lifecycle {
                initialize(memory.as_ptr().cast(), INITIALIZE_NO_NUMBERS);
            }
            Ok(Self {
                program: program.clone(),
                lifecycle,
                memory,
                layout,
            })
        }
    }

    /// Address of the struct, which does not move.
    pub fn address(&self) -> *const c_void {
        self.memory.as_ptr().cast()
    }

    /// Mutable address of the struct.
    pub fn address_mut(&mut self) -> *mut c_void {
        self.memory.as_ptr().cast()
    }

    /// Program of the struct. Two structs with the same program have one type and one
    /// layout.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }
}

impl Drop for Struct {
    fn drop(&mut self) {
        let memory = self.memory.as_ptr();
        // SAFETY: an initialized struct of the type, in memory of that layout.
        unsafe {
            match self.lifecycle {
                Lifecycle::Flat => {}
                Lifecycle::KnownC => self.program.finalize(memory.cast()),
                Lifecycle::C { finalize } | Lifecycle::Cpp { finalize, .. } => {
                    finalize(memory.cast());
                }
            }
            dealloc(memory, self.layout);
        }
    }
}
