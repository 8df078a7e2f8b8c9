//! Type tables of C: the members of generated structs, as `pteros interface generate
//! --c` writes them. The layout is part of the ABI of `libpteros` (`pteros/types.h`).

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::null;
use std::sync::Arc;

use parking_lot::Mutex;
use pteros_msg::dynamic::DynamicType;

use crate::description::IntrospectedType;
use crate::failure::{Failure, Outcome};
use crate::introspection::{MessageMember, MessageMembers, MessageTypeSupport};
use crate::lifecycle::Struct;
use crate::members::{DEPTH_MAX, type_id};
use crate::plain::PlainLayout;
use crate::program::Program;
use crate::sequence::CSequence;

/// `pteros_member_t`: a member of a struct.
#[repr(C)]
pub struct CMember {
    /// Name of the field.
    pub name: *const c_char,
    /// Table of a nested message, else null.
    pub message: *const CMessageTable,
    /// Position in the struct, bytes.
    pub offset: u32,
    /// Elements of an array, or bound of a sequence; 0 without.
    pub size: u32,
    /// Bound of a string; 0 without.
    pub string_bound: u32,
    /// `rosidl_typesupport_introspection_field_types`.
    pub kind: u8,
    /// 0 a single value, 1 an array, 2 a sequence.
    pub collection: u8,
    /// Zeros.
    pub reserved: [u8; 2],
}

/// `pteros_message_type_t`: a message type.
#[repr(C)]
pub struct CMessageTable {
    /// ROS name, for example `std_msgs/msg/String`.
    pub name: *const c_char,
    /// Array of `member_count` members.
    pub members: *const CMember,
    /// Number of members, at least one.
    pub member_count: u32,
    /// Size of the struct, bytes.
    pub size_of: u32,
    /// CDR of a message with the type's default values; null if all are zero.
    pub defaults: *const u8,
    /// Bytes of `defaults`.
    pub defaults_size: usize,
}

pub(crate) const ARRAY: u8 = 1;
pub(crate) const SEQUENCE: u8 = 2;

/// A message type of a C program.
pub struct CMessageType {
    /// Reads and writes its structs.
    pub program: Arc<Program>,
    /// Layout for loans, if the memory of a struct is its CDR body.
    pub plain: Option<PlainLayout>,
    /// Fields, type hash and DDS name.
    pub dynamic: DynamicType,
    /// Offsets of the members, in the order of the definition.
    offsets: Vec<usize>,
    /// Tables of members that are single messages, null for others.
    parts: Vec<TableAddress>,
    /// Sizes of the struct and of nested ones, with the offsets of their members.
    layout: Vec<u32>,
    defaults: Option<&'static [u8]>,
    /// Its table, if a string or sequence has a bound.
    bounded: Option<TableAddress>,
}

/// Address of a table, which stays for the life of the process.
struct TableAddress(*const CMessageTable);

// SAFETY: tables are constants of the program.
unsafe impl Send for TableAddress {}
// SAFETY: as above.
unsafe impl Sync for TableAddress {}

impl CMessageType {
    /// The type of a table. The same table has one type, which is never freed.
    ///
    /// # Safety
    /// `table` is null or points to a table that `pteros interface generate --c` has
    /// written, which stays for the life of the process.
    ///
    /// # Errors
    /// The table is null or broken.
    pub unsafe fn of(table: *const CMessageTable) -> Outcome<Arc<Self>> {
        static TYPES: Mutex<Option<HashMap<usize, Arc<CMessageType>>>> = Mutex::new(None);
        let known = TYPES
            .lock()
            .as_ref()
            .and_then(|all| all.get(&table.addr()).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        // SAFETY: as for this function.
        let made = Arc::new(unsafe { Self::compile(table) }?);
        // Another thread may have compiled it first.
        let mut types = TYPES.lock();
        let known = types.get_or_insert_default().entry(table.addr());
        Ok(known.or_insert(made).clone())
    }

    unsafe fn compile(table: *const CMessageTable) -> Outcome<Self> {
        let mut converted = Converted::default();
        // SAFETY: as for `of`.
        unsafe {
            let members = converted.convert(table, DEPTH_MAX)?;
            let table = &*table;
            let program = Arc::new(Program::compile_known(&*members)?);
            let broken = |why: String| {
                let name = CStr::from_ptr(table.name).to_string_lossy();
                Failure::error(format!("the type table of {name} is broken: {why}"))
            };
            let description = IntrospectedType::new(&*members)
                .describe()
                .ok_or_else(|| broken("a member has an unknown type".into()))?;
            let dynamic =
                DynamicType::new(&description).map_err(|error| broken(error.to_string()))?;
            let offsets = table.members().iter().map(|one| one.offset as usize);
            Ok(Self {
                bounded: table.is_bounded().then_some(TableAddress(table)),
                plain: PlainLayout::of(&program),
                program,
                dynamic,
                offsets: offsets.collect(),
                parts: table
                    .members()
                    .iter()
                    .map(|one| TableAddress(one.part()))
                    .collect(),
                layout: std::mem::take(&mut converted.layout),
                defaults: (!table.defaults.is_null())
                    .then(|| std::slice::from_raw_parts(table.defaults, table.defaults_size)),
            })
        }
    }

    /// Its table, if a string or sequence has a bound.
    pub(crate) fn bounded_table(&self) -> Option<&CMessageTable> {
        let TableAddress(table) = self.bounded.as_ref()?;
        // SAFETY: the table that `of` has compiled.
        unsafe { table.as_ref() }
    }

    /// Position of a member in the struct, bytes.
    pub fn offset(&self, index: usize) -> Option<usize> {
        self.offsets.get(index).copied()
    }

    /// Whether that member is a single message of that type.
    pub fn has_part(&self, index: usize, part: &Self) -> bool {
        let Some(TableAddress(table)) = self.parts.get(index) else {
            return false;
        };
        // SAFETY: a table that is a part of one that `of` has compiled.
        unsafe { Self::of(*table) }.is_ok_and(|member| member.is_same(part))
    }

    /// Whether a struct of one type is one of the other: name, type hash and layout agree.
    /// A program and its plug-ins may each have a copy of the tables of a package.
    pub fn is_same(&self, other: &Self) -> bool {
        std::ptr::eq(self, other)
            || self.dynamic.name() == other.dynamic.name()
                && self.dynamic.hash() == other.dynamic.hash()
                && self.layout == other.layout
    }

    /// A struct with the type's default values.
    ///
    /// # Errors
    /// There is no memory.
    pub fn default_struct(&self) -> Outcome<Struct> {
        let mut made = Struct::new(&self.program)?;
        // SAFETY: a struct of the type, which is ours alone.
        unsafe { self.set_defaults(made.address_mut()) }?;
        Ok(made)
    }

    /// Initializes memory as a struct with the type's default values. Strings and
    /// sequences with a default value allocate.
    ///
    /// # Safety
    /// `message` points to writable memory of the size and alignment of the struct,
    /// whose content owns nothing.
    ///
    /// # Errors
    /// There is no memory. The struct is initialized, with zeros in part.
    pub unsafe fn initialize(&self, message: *mut c_void) -> Outcome {
        // SAFETY: as for this function; zeros are a valid struct.
        unsafe {
            message.cast::<u8>().write_bytes(0, self.program.size_of);
            self.set_defaults(message)
        }
    }

    /// Gives a sequence `size` structs with default values. What it contained is
    /// overwritten and not freed.
    ///
    /// # Safety
    /// `sequence` points to writable memory of a `T__Sequence` of the type.
    ///
    /// # Errors
    /// There is no memory. The sequence is empty.
    pub unsafe fn initialize_sequence(&self, sequence: *mut c_void, size: usize) -> Outcome {
        // SAFETY: as for this function.
        let sequence = unsafe { &mut *sequence.cast::<CSequence>() };
        *sequence = CSequence::zeroed(size, self.program.size_of)?;
        if self.defaults.is_none() {
            return Ok(());
        }
        for at in 0..size {
            // SAFETY: an element of zeros, which is an initialized struct.
            let set = unsafe {
                let element = sequence.data.cast::<u8>().add(at * self.program.size_of);
                self.set_defaults(element.cast())
            };
            if let Err(failure) = set {
                // SAFETY: as for this function.
                unsafe { self.finalize_sequence(std::ptr::from_mut(sequence).cast()) };
                return Err(failure);
            }
        }
        Ok(())
    }

    /// Frees the structs of a sequence and what they own, and empties it.
    ///
    /// # Safety
    /// `sequence` points to an initialized `T__Sequence` of the type, which nothing else
    /// uses. Its memory is malloc's.
    pub unsafe fn finalize_sequence(&self, sequence: *mut c_void) {
        // SAFETY: as for this function.
        unsafe {
            let sequence = &mut *sequence.cast::<CSequence>();
            self.program.finalize_elements(sequence);
        }
    }

    /// # Safety
    /// `message` points to an initialized struct of the type, which nothing else uses.
    unsafe fn set_defaults(&self, message: *mut c_void) -> Outcome {
        match self.defaults {
            // SAFETY: as for this function.
            Some(defaults) => unsafe { self.program.decode(defaults, message) },
            None => Ok(()),
        }
    }
}

impl CMember {
    fn part(&self) -> *const CMessageTable {
        match self.collection {
            0 => self.message,
            _ => null(),
        }
    }
}

impl CMessageTable {
    pub(crate) fn members(&self) -> &[CMember] {
        if self.members.is_null() {
            return &[];
        }
        // SAFETY: an array of `member_count` members, by contract of `CMessageType::of`.
        unsafe { std::slice::from_raw_parts(self.members, self.member_count as usize) }
    }
}

/// Tables as rosidl's introspection has them, while a program is compiled from them.
/// Slices in boxes, because they point to each other.
#[derive(Default)]
struct Converted {
    names: Vec<CString>,
    lists: Vec<Box<[MessageMember]>>,
    types: Vec<Box<[MessageMembers]>>,
    handles: Vec<Box<[MessageTypeSupport]>>,
    layout: Vec<u32>,
}

impl Converted {
    /// # Safety
    /// As for [`CMessageType::of`].
    unsafe fn convert(
        &mut self,
        table: *const CMessageTable,
        depth: usize,
    ) -> Outcome<*const MessageMembers> {
        let depth = depth.checked_sub(1).ok_or_else(|| {
            Failure::error(format!("the type nests more than {DEPTH_MAX} messages"))
        })?;
        // SAFETY: as for this function.
        let table = unsafe { table.as_ref() }.ok_or_else(|| {
            Failure::error(
                "the type table is null: pass one that `pteros interface generate --c` has written",
            )
        })?;
        // SAFETY: as for this function.
        let full = unsafe { text(table.name) };
        let Some((namespace, name)) = full.rsplit_once('/') else {
            return Err(Failure::error(format!(
                "the type table names {full:?}, which is no type name as std_msgs/msg/String"
            )));
        };
        self.layout.push(table.size_of);
        let mut list = Vec::new();
        for member in table.members() {
            // SAFETY: as for this function.
            list.push(unsafe { self.member(member, table, full, depth) }?);
        }
        let list = list.into_boxed_slice();
        let members: Box<[_]> = Box::new([MessageMembers {
            message_namespace: self.name(&namespace.replace('/', "__")),
            message_name: self.name(name),
            member_count: table.member_count,
            size_of: table.size_of as usize,
            has_any_key_member: false,
            members: list.as_ptr(),
            init_function: None,
            fini_function: None,
        }]);
        let address = members.as_ptr();
        self.lists.push(list);
        self.types.push(members);
        Ok(address)
    }

    unsafe fn member(
        &mut self,
        member: &CMember,
        table: &CMessageTable,
        of: &str,
        depth: usize,
    ) -> Outcome<MessageMember> {
        if member.offset >= table.size_of || member.collection > SEQUENCE {
            // SAFETY: as for `convert`.
            let name = unsafe { text(member.name) };
            return Err(Failure::error(format!(
                "the type table of {of} is broken: member {name:?} at byte {} of {}",
                member.offset, table.size_of
            )));
        }
        self.layout.push(member.offset);
        let members = if member.kind == type_id::MESSAGE {
            // SAFETY: as for `convert`.
            let data = unsafe { self.convert(member.message, depth) }?;
            let handle: Box<[_]> = Box::new([MessageTypeSupport {
                typesupport_identifier: null(),
                data: data.cast(),
                func: None,
                get_type_hash_func: None,
                get_type_description_func: null(),
                get_type_description_sources_func: null(),
            }]);
            let address = handle.as_ptr();
            self.handles.push(handle);
            address
        } else {
            null()
        };
        Ok(MessageMember {
            name: member.name,
            type_id: member.kind,
            string_upper_bound: member.string_bound as usize,
            members,
            is_key: false,
            is_array: member.collection >= ARRAY,
            array_size: member.size as usize,
            is_upper_bound: member.collection == SEQUENCE && member.size > 0,
            offset: member.offset,
            default_value: null(),
            size_function: None,
            get_const_function: None,
            get_function: None,
            fetch_function: None,
            assign_function: None,
            resize_function: null(),
        })
    }

    fn name(&mut self, name: &str) -> *const c_char {
        let name = CString::new(name).unwrap_or_default();
        let address = name.as_ptr();
        self.names.push(name);
        address
    }
}

/// # Safety
/// `text` is null or a C string that is never freed.
pub(crate) unsafe fn text(text: *const c_char) -> &'static str {
    if text.is_null() {
        return "";
    }
    // SAFETY: as for this function.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("")
}
