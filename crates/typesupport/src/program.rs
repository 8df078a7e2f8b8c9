//! The program of a type: its members in the order of CDR, flattened.

use std::ffi::c_void;
use std::sync::Arc;

use crate::failure::{Failure, Outcome};
use crate::introspection::{MessageMember, MessageMembers};
use crate::lifecycle::Lifecycle;
use crate::members::{self, DEPTH_MAX, Language, type_id};
use crate::sequence::{Elements, SequenceAccess};
use crate::strings;

/// No bound of a string or sequence.
pub(super) const UNBOUNDED: usize = usize::MAX;

/// One step: members at a byte offset of the struct.
pub(super) enum Op {
    /// Numbers of one width, side by side.
    Numbers {
        offset: usize,
        width: usize,
        count: usize,
    },
    /// Booleans, side by side.
    Bools { offset: usize, count: usize },
    /// A string or an array of strings.
    Strings {
        offset: usize,
        count: usize,
        is_array: bool,
        wide: bool,
        bound: usize,
    },
    /// Numbers of variable count, contiguous in memory.
    NumberSequence {
        offset: usize,
        width: usize,
        sequence: SequenceAccess,
    },
    /// A sequence of booleans.
    BoolSequence {
        offset: usize,
        sequence: SequenceAccess,
    },
    /// Strings of variable count.
    StringSequence {
        offset: usize,
        wide: bool,
        bound: usize,
        sequence: SequenceAccess,
    },
    /// A fixed number of nested messages.
    MessageArray {
        offset: usize,
        count: usize,
        program: Arc<Program>,
    },
    /// Nested messages of variable count.
    MessageSequence {
        offset: usize,
        sequence: SequenceAccess,
        program: Arc<Program>,
    },
}

impl Op {
    fn has_bools(&self) -> bool {
        match self {
            Self::Bools { .. } | Self::BoolSequence { .. } => true,
            Self::MessageArray { program, .. } | Self::MessageSequence { program, .. } => {
                program.has_bools
            }
            Self::Numbers { .. }
            | Self::Strings { .. }
            | Self::NumberSequence { .. }
            | Self::StringSequence { .. } => false,
        }
    }
}

/// Reads and writes structs of one type.
pub struct Program {
    pub(super) ops: Vec<Op>,
    /// Size of the struct, bytes.
    pub size_of: usize,
    pub(crate) language: Language,
    /// Bytes until the end of the last member, if all members are numbers and booleans
    /// that lie in the struct itself (a flat type).
    pub(super) flat_bytes: Option<usize>,
    /// Whether it has booleans, in nested messages too. Their bytes must become 0 or 1,
    /// so a copy of such a struct is no copy of its bytes.
    has_bools: bool,
    /// How to create and destroy a struct; `None` if the typesupport lacks the functions.
    pub(super) lifecycle: Option<Lifecycle>,
    /// Whether C sequences are accessed without functions of a typesupport library.
    pub(crate) is_known: bool,
    /// Initializes a struct with the type's default values.
    initialize: Option<unsafe extern "C" fn(*mut c_void, u32)>,
}

/// `ROSIDL_RUNTIME_C_MSG_INIT_ALL`.
const INITIALIZE_ALL: u32 = 0;

// The function pointers are those of a shared library that is never unloaded; they
// have no state.

impl Program {
    /// Compiles a type.
    ///
    /// # Safety
    /// `members` are those of a type of rosidl in that language.
    ///
    /// # Errors
    /// A member has a type that ROS 2 does not serialize.
    pub unsafe fn compile(members: &MessageMembers, language: Language) -> Outcome<Self> {
        // SAFETY: as for this function.
        unsafe { Self::compile_nested(members, language, false, DEPTH_MAX) }
    }

    /// Compiles a C type whose strings and sequences are known to be rosidl's objects
    /// with malloc's memory. The members need no functions.
    ///
    /// # Safety
    /// As for [`Self::compile`].
    ///
    /// # Errors
    /// As for [`Self::compile`].
    pub(crate) unsafe fn compile_known(members: &MessageMembers) -> Outcome<Self> {
        // SAFETY: as for this function.
        unsafe { Self::compile_nested(members, Language::C, true, DEPTH_MAX) }
    }

    /// Writes default values into the memory of a plain struct.
    ///
    /// # Safety
    /// The memory has the size and the alignment of the struct.
    pub unsafe fn initialize(&self, memory: &mut [u8]) {
        match self.initialize {
            // SAFETY: as for this function.
            Some(initialize) => unsafe {
                initialize(memory.as_mut_ptr().cast(), INITIALIZE_ALL);
            },
            None => memory.fill(0),
        }
    }

    unsafe fn compile_nested(
        members: &MessageMembers,
        language: Language,
        is_known: bool,
        depth: usize,
    ) -> Outcome<Self> {
        let mut program = Self {
            ops: Vec::new(),
            size_of: members.size_of,
            language,
            flat_bytes: None,
            has_bools: false,
            lifecycle: None,
            is_known,
            initialize: members.init_function,
        };
        // SAFETY: as for `compile`.
        unsafe { program.add_members(members, 0, depth) }?;
        program.ops.shrink_to_fit();
        program.flat_bytes = program.flat_end();
        program.has_bools = program.ops.iter().any(Op::has_bools);
        program.lifecycle = match (is_known, program.is_flat()) {
            (true, false) => Some(Lifecycle::KnownC),
            (_, is_flat) => Lifecycle::of(members, language, is_flat),
        };
        Ok(program)
    }

    /// Whether the struct owns no other memory.
    pub(super) fn is_flat(&self) -> bool {
        self.flat_bytes.is_some()
    }

    /// The bytes from the start of the struct whose copy is a copy of the message. `None`
    /// if it has memory beside itself, or booleans.
    pub(super) fn copyable_bytes(&self) -> Option<usize> {
        self.flat_bytes.filter(|_| !self.has_bools)
    }

    fn flat_end(&self) -> Option<usize> {
        let ends = self.ops.iter().map(|op| match op {
            Op::Numbers {
                offset,
                width,
                count,
            } => Some(offset + width * count),
            Op::Bools { offset, count } => Some(offset + count),
            Op::MessageArray {
                offset,
                count,
                program,
            } if program.is_flat() => Some(offset + program.size_of * count),
            _ => None,
        });
        let end = ends.reduce(|one, other| Some(one?.max(other?)));
        end.unwrap_or(Some(0)).filter(|end| *end <= self.size_of)
    }

    unsafe fn add_members(
        &mut self,
        members: &MessageMembers,
        base: usize,
        depth: usize,
    ) -> Outcome {
        // SAFETY: as for `compile`.
        for member in unsafe { members::list(members) } {
            // SAFETY: as for `compile`.
            unsafe { self.add_member(member, base, depth) }?;
        }
        Ok(())
    }

    unsafe fn add_member(&mut self, member: &MessageMember, base: usize, depth: usize) -> Outcome {
        let offset = base + member.offset as usize;
        let is_sequence = member.is_array && (member.array_size == 0 || member.is_upper_bound);
        let count = if member.is_array {
            member.array_size
        } else {
            1
        };
        if is_sequence {
            let bound = if member.is_upper_bound {
                member.array_size
            } else {
                UNBOUNDED
            };
            // SAFETY: as for `compile`.
            let sequence = unsafe { self.sequence_access(member, bound, depth) }?;
            let op = match member.type_id {
                type_id::BOOLEAN => Op::BoolSequence { offset, sequence },
                type_id::STRING | type_id::WSTRING => Op::StringSequence {
                    offset,
                    wide: member.type_id == type_id::WSTRING,
                    bound: string_bound(member),
                    sequence,
                },
                type_id::MESSAGE => Op::MessageSequence {
                    offset,
                    sequence,
                    // SAFETY: as for `compile`.
                    program: unsafe { self.nested_program(member, depth) }?,
                },
                other => Op::NumberSequence {
                    offset,
                    // SAFETY: as for `compile`.
                    width: unsafe { width(member, other) }?,
                    sequence,
                },
            };
            self.ops.push(op);
            return Ok(());
        }
        match member.type_id {
            type_id::BOOLEAN => self.ops.push(Op::Bools { offset, count }),
            type_id::STRING | type_id::WSTRING => self.ops.push(Op::Strings {
                offset,
                count,
                is_array: member.is_array,
                wide: member.type_id == type_id::WSTRING,
                bound: string_bound(member),
            }),
            type_id::MESSAGE if !member.is_array => {
                let depth = less_deep(depth)?;
                // SAFETY: as for `compile`.
                let nested = unsafe { members::nested(member) }.ok_or_else(no_members)?;
                // SAFETY: as for `compile`.
                return unsafe { self.add_members(nested, offset, depth) };
            }
            type_id::MESSAGE => {
                // SAFETY: as for `compile`.
                let program = unsafe { self.nested_program(member, depth) }?;
                self.ops.push(Op::MessageArray {
                    offset,
                    count,
                    program,
                });
            }
            other => {
                // SAFETY: as for `compile`.
                let width = unsafe { width(member, other) }?;
                self.add_numbers(offset, width, count);
            }
        }
        Ok(())
    }

    unsafe fn sequence_access(
        &self,
        member: &MessageMember,
        bound: usize,
        depth: usize,
    ) -> Outcome<SequenceAccess> {
        if !self.is_known {
            // SAFETY: as for `compile`.
            let element_bytes = unsafe { element_bytes(member, self.language) };
            let access = SequenceAccess::of(member, self.language, element_bytes, bound);
            return Ok(access);
        }
        let elements = match member.type_id {
            type_id::BOOLEAN => Elements::Numbers { width: 1 },
            type_id::STRING | type_id::WSTRING => Elements::Strings,
            type_id::MESSAGE => {
                // SAFETY: as for `compile`.
                Elements::Messages(unsafe { self.nested_program(member, depth) }?)
            }
            other => Elements::Numbers {
                // SAFETY: as for `compile`.
                width: unsafe { width(member, other) }?,
            },
        };
        Ok(SequenceAccess::of_known(elements, bound))
    }

    /// Adds numbers, to those before them if they lie side by side.
    fn add_numbers(&mut self, offset: usize, width: usize, count: usize) {
        if let Some(Op::Numbers {
            offset: before,
            width: same,
            count: merged,
        }) = self.ops.last_mut()
            && *same == width
            && *before + *merged * width == offset
        {
            *merged += count;
            return;
        }
        self.ops.push(Op::Numbers {
            offset,
            width,
            count,
        });
    }

    unsafe fn nested_program(&self, member: &MessageMember, depth: usize) -> Outcome<Arc<Self>> {
        // SAFETY: as for `compile`.
        let nested = unsafe { members::nested(member) }.ok_or_else(no_members)?;
        // SAFETY: as for `compile`.
        let program = unsafe {
            Self::compile_nested(nested, self.language, self.is_known, less_deep(depth)?)
        }?;
        Ok(Arc::new(program))
    }
}

fn string_bound(member: &MessageMember) -> usize {
    match member.string_upper_bound {
        0 => UNBOUNDED,
        bound => bound,
    }
}

/// Bytes of an element of a sequence; `None` if it has an unknown type.
unsafe fn element_bytes(member: &MessageMember, language: Language) -> Option<usize> {
    match member.type_id {
        type_id::BOOLEAN => Some(1),
        type_id::STRING | type_id::WSTRING => Some(strings::stride(language)),
        // SAFETY: as for `compile`.
        type_id::MESSAGE => unsafe { members::nested(member) }.map(|nested| nested.size_of),
        other => members::number_bytes(other),
    }
}

unsafe fn width(member: &MessageMember, type_id: u8) -> Outcome<usize> {
    members::number_bytes(type_id).ok_or_else(|| {
        let what = if type_id == type_id::LONG_DOUBLE {
            "long double".into()
        } else {
            format!("type {type_id}")
        };
        // SAFETY: as for `compile`.
        let name = unsafe { members::member_name(member) };
        Failure::unsupported(&format!("member {name:?} of {what}"))
    })
}

fn less_deep(depth: usize) -> Outcome<usize> {
    let too_deep = || Failure::error(format!("the type nests more than {DEPTH_MAX} messages"));
    depth.checked_sub(1).ok_or_else(too_deep)
}

fn no_members() -> Failure {
    Failure::error("the type support of a nested message has no members")
}
