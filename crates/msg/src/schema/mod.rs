//! Interface files (`.msg`, `.srv`, `.action`, `.idl`) as values.
//!
//! The grammar is the one of ROS 2's `rosidl_adapter`: fields with defaults,
//! constants, fixed arrays, bounded and unbounded sequences, bounded strings, `#`
//! comments, and `---` between the parts of a service or an action; also DDS
//! annotations in comments (`# @key`, `# @appendable`, `# @dds_name`). [`parse`]
//! parses text; an error is a [`SchemaError`] with file, line and remedy. This
//! module reads no file and no other interface:
//! [`InterfaceLibrary`](crate::library::InterfaceLibrary) resolves names of nested
//! types.

mod annotation;
mod idl;
mod literal;
mod names;
mod parse;

use crate::describe::Extensibility;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

pub use idl::is_idl;
pub use literal::Literal;
pub use names::{is_constant_name, is_field_name, is_interface_name, is_package_name};
pub use parse::parse;

/// The three kinds of interface; also the middle word of a full type name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InterfaceKind {
    /// A `.msg` file: one part.
    Message,
    /// A `.srv` file: request and response.
    Service,
    /// An `.action` file: goal, result and feedback.
    Action,
}

impl InterfaceKind {
    /// All kinds, in the order in which ROS 2 lists them.
    pub const ALL: [InterfaceKind; 3] = [Self::Message, Self::Service, Self::Action];

    /// `"msg"`, `"srv"` or `"action"`: folder, file ending and name part at once.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Message => "msg",
            Self::Service => "srv",
            Self::Action => "action",
        }
    }

    /// The kind with this [`word`](Self::word), if there is one.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// How many parts a file of this kind has: 1, 2 or 3.
    pub const fn part_count(self) -> usize {
        match self {
            Self::Message => 1,
            Self::Service => 2,
            Self::Action => 3,
        }
    }
}

impl fmt::Display for InterfaceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// One interface file, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct InterfaceFile {
    /// The package it belongs to, `std_msgs`.
    pub package: String,
    /// Its name without ending, `String`.
    pub name: String,
    /// Message, service or action.
    pub kind: InterfaceKind,
    /// The structures, [`InterfaceKind::part_count`] of them: the message;
    /// request and response; goal, result and feedback.
    pub parts: Vec<StructSpec>,
}

/// One structure of an interface file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StructSpec {
    /// Comment lines that belong to the structure as a whole, without `#`.
    pub comments: Vec<String>,
    /// The fields, in order. May be empty.
    pub fields: Vec<FieldSpec>,
    /// The constants, in order.
    pub constants: Vec<ConstantSpec>,
    /// Whether fields may be added one day: `# @appendable`.
    pub extensibility: Extensibility,
    /// The type's name in DDS where it is not ROS's: `# @dds_name ShapeType`.
    pub dds_name: Option<String>,
}

/// One field: `type name [default]`.
#[derive(Clone, Debug, PartialEq)]
pub struct FieldSpec {
    /// The field's name, `frame_id`.
    pub name: String,
    /// Its type.
    pub ty: TypeSpec,
    /// Its default value, already checked against the type.
    pub default: Option<Literal>,
    /// Whether it is part of the key: `# @key` behind it.
    pub is_key: bool,
    /// Comment lines before it and behind it, without `#`.
    pub comments: Vec<String>,
    /// Line in the file, counted from 1.
    pub line: u32,
}

/// One constant: `type NAME=value`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantSpec {
    /// The constant's name, `STATUS_OK`.
    pub name: String,
    /// Its type; never nested, never an array.
    pub ty: BaseType,
    /// Its value, already checked against the type.
    pub value: Literal,
    /// Comment lines before it and behind it, without `#`.
    pub comments: Vec<String>,
    /// Line in the file, counted from 1.
    pub line: u32,
}

/// A field's type: an element type and how many of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeSpec {
    /// The element.
    pub base: BaseType,
    /// How many.
    pub shape: Shape,
}

/// How many elements a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Exactly one, not in a collection: `T`.
    Single,
    /// Exactly this many: `T[N]`.
    Array(u32),
    /// At most this many: `T[<=N]`.
    Bounded(u32),
    /// Any number: `T[]`.
    Unbounded,
}

/// An element type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names without a comment say it all")]
pub enum BaseType {
    Bool,
    /// `byte`, an octet without arithmetic; `u8` in Rust.
    Byte,
    /// `char`, which ROS 2 treats as `uint8`.
    Char,
    Int8,
    Uint8,
    Int16,
    Uint16,
    Int32,
    Uint32,
    Int64,
    Uint64,
    Float32,
    Float64,
    /// `string`, or `string<=N` with at most N bytes.
    String(Option<u32>),
    /// `wstring`, or `wstring<=N` with at most N UTF-16 units.
    WString(Option<u32>),
    /// Another message, always with its package: `std_msgs`, `Header`.
    Nested {
        /// Its package; the file's own where the file named none.
        package: String,
        /// Its name within the package, `Header`.
        name: String,
    },
}

impl BaseType {
    /// Whether elements have one fixed size and no inner structure.
    pub fn is_primitive(&self) -> bool {
        !matches!(
            self,
            Self::String(_) | Self::WString(_) | Self::Nested { .. }
        )
    }

    /// Full name of a nested type, `std_msgs/msg/Header`.
    pub fn nested_name(&self) -> Option<String> {
        match self {
            Self::Nested { package, name } => Some(alloc::format!("{package}/msg/{name}")),
            _ => None,
        }
    }
}

impl fmt::Display for BaseType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self {
            Self::Bool => "bool",
            Self::Byte => "byte",
            Self::Char => "char",
            Self::Int8 => "int8",
            Self::Uint8 => "uint8",
            Self::Int16 => "int16",
            Self::Uint16 => "uint16",
            Self::Int32 => "int32",
            Self::Uint32 => "uint32",
            Self::Int64 => "int64",
            Self::Uint64 => "uint64",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::String(None) => "string",
            Self::WString(None) => "wstring",
            Self::String(Some(bound)) => return write!(f, "string<={bound}"),
            Self::WString(Some(bound)) => return write!(f, "wstring<={bound}"),
            Self::Nested { package, name } => return write!(f, "{package}/{name}"),
        };
        f.write_str(word)
    }
}

impl fmt::Display for TypeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.base)?;
        match self.shape {
            Shape::Single => Ok(()),
            Shape::Array(count) => write!(f, "[{count}]"),
            Shape::Bounded(bound) => write!(f, "[<={bound}]"),
            Shape::Unbounded => f.write_str("[]"),
        }
    }
}

/// A mistake in an interface file. Displays as `file:line: message`.
#[derive(Clone, PartialEq, Eq)]
pub struct SchemaError {
    /// The origin given to [`parse`]: a path, or another name for the text.
    pub file: String,
    /// Line, counted from 1.
    pub line: u32,
    /// The problem and its remedy.
    pub message: String,
}

crate::debug_as_display!(SchemaError);

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.file, self.line, self.message)
    }
}

impl core::error::Error for SchemaError {}
