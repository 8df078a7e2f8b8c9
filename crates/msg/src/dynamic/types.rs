//! Types at run time, resolved once from a type description.
//!
//! Descriptions may come from the network: missing, recursive or oversized types
//! are rejected here, so that a [`DynamicType`] is always finite and complete.

use super::number_type::Number;
use super::value::Value;
use crate::cdr::{DEPTH_MAX, DecodeError, Decoder, DecoderScope, Encoder, EncoderScope, UNBOUNDED};
use crate::describe::{Extensibility, type_id};
use crate::message::dds_type_name;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// A default value of a type has at most this many numbers, strings and bools.
///
/// Fixed arrays multiply when nested; 32 Mi elements hold an RGB image of 4K, and the limit
/// keeps a hostile description from filling the memory.
pub const ELEMENTS_MAX: usize = 1 << 25;

/// ROS 2 gives an empty type this member, because C has no empty structs.
pub(super) const PLACEHOLDER: &str = "structure_needs_at_least_one_member";

/// A message type; cloning shares it.
#[derive(Clone)]
pub struct DynamicType(pub(super) Arc<Struct>);

pub(super) struct Struct {
    pub(super) name: String,
    pub(super) fields: Vec<MessageField>,
    pub(super) extensibility: Extensibility,
    pub(super) dds_name: Option<String>,
    pub(super) key_bytes_max: usize,
    /// Minimal size of a value on the wire, without padding.
    pub(super) wire_bytes_min: usize,
    /// Numbers, strings and bools in a default value, without sequences.
    pub(super) elements: usize,
}

/// One field of a [`DynamicType`].
#[derive(Clone, Debug)]
pub struct MessageField {
    /// As in the definition, `frame_id`.
    pub name: String,
    /// The type of the field, or of each of its elements.
    pub element: Element,
    /// One, a fixed number, or a sequence of them.
    pub shape: Shape,
    /// The value in a new message, if the type has one.
    pub default: Option<Value>,
    /// Whether it is part of the key.
    pub is_key: bool,
}

/// The type of a field, or of each of its elements.
#[derive(Clone, Debug, PartialEq)]
pub enum Element {
    /// `bool`, one byte on the wire.
    Bool,
    /// `byte`, a number on the wire, a character in ROS 2's YAML.
    Byte,
    /// `int8`
    I8,
    /// `uint8` and `char`
    U8,
    /// `int16`
    I16,
    /// `uint16`
    U16,
    /// `int32`
    I32,
    /// `uint32`
    U32,
    /// `int64`
    I64,
    /// `uint64`
    U64,
    /// `float32`
    F32,
    /// `float64`
    F64,
    /// `string`, of at most so many bytes.
    String {
        /// Or [`UNBOUNDED`].
        bound: usize,
    },
    /// `wstring`, of at most so many UTF-16 units.
    WString {
        /// Or [`UNBOUNDED`].
        bound: usize,
    },
    /// Another message type.
    Message(DynamicType),
}

/// How many elements a field holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// One.
    Single,
    /// Exactly so many.
    Array(usize),
    /// Up to `bound`, or any number when it is [`UNBOUNDED`].
    Sequence {
        /// The most elements.
        bound: usize,
    },
}

/// A description from which no type can be made.
#[derive(Clone, PartialEq, Eq)]
pub enum TypeError {
    /// A field's type is not among the referenced descriptions.
    Missing {
        /// The type with the field.
        type_name: String,
        /// The field whose type is missing.
        field: String,
        /// The type that it names.
        nested: String,
    },
    /// A field's type id is not one of ROS 2's.
    UnknownTypeId {
        /// The type with the field.
        type_name: String,
        /// The field with the unknown id.
        field: String,
        /// The id found; [`type_id`](crate::describe::type_id) has those of ROS 2.
        type_id: u8,
    },
    /// A type contains itself, or nests deeper than the decoder goes.
    TooDeep {
        /// The type at which the limit was met.
        type_name: String,
    },
    /// Its fixed arrays exceed [`ELEMENTS_MAX`].
    TooLarge {
        /// Full name of the type with the arrays.
        type_name: String,
    },
    /// A default value does not fit its field.
    BadDefault {
        /// The type with the field.
        type_name: String,
        /// The field that has the default.
        field: String,
        /// The default.
        text: String,
    },
}

crate::debug_as_display!(TypeError);

impl fmt::Display for TypeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing {
                type_name,
                field,
                nested,
            } => write!(
                f,
                "{type_name}: field \"{field}\" is a {nested}, which the description lacks; add it to the referenced types"
            ),
            Self::UnknownTypeId {
                type_name,
                field,
                type_id,
            } => {
                write!(
                    f,
                    "{type_name}: field \"{field}\" has unknown type id {type_id}"
                )
            }
            Self::TooDeep { type_name } => write!(
                f,
                "{type_name}: nested deeper than {DEPTH_MAX}, or contains itself"
            ),
            Self::TooLarge { type_name } => write!(
                f,
                "{type_name}: fixed arrays hold more than {ELEMENTS_MAX} elements"
            ),
            Self::BadDefault {
                type_name,
                field,
                text,
            } => write!(
                f,
                "{type_name}: default {text:?} does not fit field \"{field}\""
            ),
        }
    }
}

impl core::error::Error for TypeError {}

impl DynamicType {
    /// For example `std_msgs/msg/String`.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How the type may evolve.
    pub fn extensibility(&self) -> Extensibility {
        self.0.extensibility
    }

    /// The type's name in DDS where it is not ROS's mapping.
    pub fn dds_name(&self) -> Option<&str> {
        self.0.dds_name.as_deref()
    }

    /// The name that is announced: [`Self::dds_name`] or ROS's mapping.
    pub fn dds_type_name(&self) -> String {
        match self.dds_name() {
            Some(name) => name.into(),
            None => dds_type_name(self.name()),
        }
    }

    /// As [`key_bytes_max`](crate::key::key_bytes_max) says.
    pub fn key_bytes_max(&self) -> usize {
        self.0.key_bytes_max
    }

    /// Opens a structure of this extensibility; [`Self::end`] closes it.
    pub(super) fn begin(&self, out: &mut Encoder<'_>) -> Option<EncoderScope> {
        (self.extensibility() == Extensibility::Appendable).then(|| out.begin_appendable())
    }

    pub(super) fn end(&self, scope: Option<EncoderScope>, out: &mut Encoder<'_>) {
        if let Some(scope) = scope {
            out.end_appendable(scope);
        }
    }

    /// Opens a structure of this extensibility for decoding; `end_struct` closes
    /// it.
    pub(crate) fn enter<'a>(
        &self,
        input: &mut Decoder<'a>,
    ) -> Result<DecoderScope<'a>, DecodeError> {
        match self.extensibility() {
            Extensibility::Final => input.begin_struct(),
            Extensibility::Appendable => input.begin_appendable(),
        }
    }

    /// All fields, in order, the placeholder of empty types included.
    pub fn fields(&self) -> &[MessageField] {
        &self.0.fields
    }

    /// The fields that a user wrote: none for an empty type.
    pub fn user_fields(&self) -> &[MessageField] {
        match self.fields() {
            [only] if only.name == PLACEHOLDER => &[],
            fields => fields,
        }
    }

    /// A field's place and description.
    pub fn field(&self, name: &str) -> Option<(usize, &MessageField)> {
        let fields = self.fields().iter().enumerate();
        fields.into_iter().find(|(_, field)| field.name == name)
    }

    /// The least that a value takes on the wire.
    pub(super) fn wire_bytes_min(&self) -> usize {
        self.0.wire_bytes_min
    }
}

/// Equal when names, fields, key and extensibility are.
impl PartialEq for DynamicType {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
            || (self.0.name == other.0.name
                && self.0.fields == other.0.fields
                && self.0.extensibility == other.0.extensibility)
    }
}

/// Defaults do not count: they are no part of a type's identity.
impl PartialEq for MessageField {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.element == other.element
            && self.shape == other.shape
            && self.is_key == other.is_key
    }
}

impl fmt::Debug for DynamicType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.name)
    }
}

impl MessageField {
    /// As an interface file writes it: `uint8[<=3]`, `string<=5[2]`.
    pub fn type_text(&self) -> String {
        let element = self.element.type_text();
        match self.shape {
            Shape::Single => element,
            Shape::Array(count) => format!("{element}[{count}]"),
            Shape::Sequence { bound: UNBOUNDED } => format!("{element}[]"),
            Shape::Sequence { bound } => format!("{element}[<={bound}]"),
        }
    }

    /// The memory that such a default takes, roughly and in bytes.
    pub(super) fn default_bytes(&self) -> usize {
        let count = match (self.shape, &self.default) {
            (Shape::Array(count), _) => count,
            (_, Some(value)) => value.len().unwrap_or(1),
            _ => 1,
        };
        let elements = count.saturating_mul(self.element.elements());
        elements.saturating_mul(size_of::<Value>())
    }

    /// The value of the field in a new message.
    pub(crate) fn default_value(&self) -> Value {
        match &self.default {
            Some(value) => value.clone(),
            None => Value::zero(&self.element, self.shape),
        }
    }
}

impl Element {
    /// As an interface file writes it.
    pub fn type_text(&self) -> String {
        match self {
            Self::String { bound: UNBOUNDED } => "string".into(),
            Self::String { bound } => format!("string<={bound}"),
            Self::WString { bound: UNBOUNDED } => "wstring".into(),
            Self::WString { bound } => format!("wstring<={bound}"),
            Self::Message(ty) => ty.name().into(),
            other => other.number_name().into(),
        }
    }

    /// The `.msg` name of a number or bool; empty for others.
    fn number_name(&self) -> &'static str {
        match self {
            Self::Bool => "bool",
            Self::Byte => "byte",
            other => other.number().map_or("", Number::name),
        }
    }

    /// The least that a value takes; of a string its length.
    pub(super) fn wire_bytes_min(&self) -> usize {
        match self {
            Self::Message(ty) => ty.wire_bytes_min(),
            other => other.fixed_bytes().unwrap_or(size_of::<u32>()),
        }
    }

    pub(super) fn elements(&self) -> usize {
        match self {
            Self::Message(ty) => ty.0.elements,
            _ => 1,
        }
    }

    /// An element type of `type_id`; `None` for message types and unknown ids.
    pub(super) fn of_type_id(id: u8, string_capacity: usize) -> Option<Self> {
        let bound = string_capacity;
        Some(match id {
            type_id::BOOLEAN => Self::Bool,
            type_id::BYTE => Self::Byte,
            type_id::INT8 => Self::I8,
            type_id::UINT8 => Self::U8,
            type_id::INT16 => Self::I16,
            type_id::UINT16 => Self::U16,
            type_id::INT32 => Self::I32,
            type_id::UINT32 => Self::U32,
            type_id::INT64 => Self::I64,
            type_id::UINT64 => Self::U64,
            type_id::FLOAT => Self::F32,
            type_id::DOUBLE => Self::F64,
            type_id::STRING => Self::String { bound: UNBOUNDED },
            type_id::WSTRING => Self::WString { bound: UNBOUNDED },
            type_id::BOUNDED_STRING => Self::String { bound },
            type_id::BOUNDED_WSTRING => Self::WString { bound },
            _ => return None,
        })
    }
}
