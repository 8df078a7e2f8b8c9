//! Decoder of peers' TypeObjects to a type description, from which a dynamic type
//! is made.
//!
//! Supported: structures (final or appendable, also derived ones), enumerations,
//! aliases, and everything that a ROS 2 message may hold. Errors name sequences of
//! sequences, unions, maps, optional members and mutable structures.

use super::identifier::{EquivalenceKind, TypeIdentifier, TypeObjectId};
use super::kinds::*;
use super::{DEPTH_MAX, ENCODING};
use crate::cdr::{DecodeError, Decoder};
use crate::describe::{
    Extensibility, Field, FieldType, IndividualTypeDescription, TypeDescription, type_id,
};
use crate::message::ros_type_name;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

/// Names of types and members, bytes each (XTypes 1.3 Annex B).
const NAME_BYTES_MAX: usize = 256;

/// Limit of structures in one type.
const TYPES_MAX: usize = 512;

/// Members of one structure, with those that it inherits.
const MEMBERS_MAX: usize = 4096;

/// Why there is no description.
#[derive(Clone, PartialEq, Eq)]
pub enum TypeObjectError {
    /// This object is needed too.
    Missing(TypeObjectId),
    /// The type, or one that it refers to, has an unsupported kind.
    Unsupported {
        /// Its name, if known.
        type_name: String,
        /// The unsupported kind, for example "a union".
        what: String,
    },
    /// An object that cannot be read.
    Malformed(DecodeError),
}

crate::debug_as_display!(TypeObjectError);

impl fmt::Display for TypeObjectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(id) => write!(f, "the type object {} is not known", id.hash),
            Self::Unsupported { type_name, what } => {
                write!(f, "type \"{type_name}\": {what} is not supported")
            }
            Self::Malformed(error) => write!(f, "a type object is malformed: {error}"),
        }
    }
}

impl core::error::Error for TypeObjectError {}

impl From<DecodeError> for TypeObjectError {
    fn from(error: DecodeError) -> Self {
        Self::Malformed(error)
    }
}

/// Describes a type from its complete object and the objects of its dependencies.
///
/// Types with a ROS 2 name get their ROS name; others their own with `/` for `::`,
/// and their own as DDS name.
///
/// # Errors
/// See [`TypeObjectError`]; [`TypeObjectError::Missing`] names the first object to
/// request.
pub fn type_description(
    id: TypeObjectId,
    objects: &BTreeMap<TypeObjectId, Arc<[u8]>>,
) -> Result<TypeDescription, TypeObjectError> {
    let mut reading = TypeObjectReader {
        objects,
        done: BTreeMap::new(),
    };
    let Resolved::Structure(name) = reading.resolve(id, 0)? else {
        return Err(unsupported("", "a type that is not a structure"));
    };
    let mut types: BTreeMap<String, IndividualTypeDescription> = reading
        .done
        .into_values()
        .filter_map(|done| match done {
            ResolvedState::Structure(ty) => Some((ty.type_name.clone(), ty)),
            ResolvedState::Other(_) => None,
        })
        .collect();
    let own = types.remove(&name).unwrap_or_default();
    Ok(TypeDescription {
        type_description: own,
        referenced: types.into_values().collect(),
    })
}

/// An object resolved for those that refer to it.
enum Resolved {
    /// By the name in its description.
    Structure(String),
    /// As if the member were of this type.
    Other(FieldType),
}

enum ResolvedState {
    Structure(IndividualTypeDescription),
    Other(FieldType),
}

struct TypeObjectReader<'a> {
    objects: &'a BTreeMap<TypeObjectId, Arc<[u8]>>,
    done: BTreeMap<TypeObjectId, ResolvedState>,
}

impl TypeObjectReader<'_> {
    fn resolve(&mut self, id: TypeObjectId, depth: usize) -> Result<Resolved, TypeObjectError> {
        if !self.done.contains_key(&id) {
            if depth > DEPTH_MAX || self.done.len() >= TYPES_MAX {
                return Err(unsupported("", "so large a type"));
            }
            let done = self.read(id, depth)?;
            self.done.insert(id, done);
        }
        match self.done.get(&id) {
            Some(ResolvedState::Structure(ty)) => Ok(Resolved::Structure(ty.type_name.clone())),
            Some(ResolvedState::Other(field)) => Ok(Resolved::Other(field.clone())),
            None => Err(TypeObjectError::Missing(id)),
        }
    }

    fn read(&mut self, id: TypeObjectId, depth: usize) -> Result<ResolvedState, TypeObjectError> {
        let bytes = self.objects.get(&id).ok_or(TypeObjectError::Missing(id))?;
        let bytes = bytes.clone();
        let mut input = Decoder::new(&bytes, ENCODING);
        let _whole = input.begin_collection()?;
        if input.u8()? != EK_COMPLETE || id.form != EquivalenceKind::Complete {
            return Err(unsupported("", "a type without names"));
        }
        match input.u8()? {
            TK_STRUCTURE => self
                .structure(&mut input, depth)
                .map(ResolvedState::Structure),
            TK_ENUM => enumeration(&mut input).map(ResolvedState::Other),
            TK_ALIAS => self.alias(&mut input, depth).map(ResolvedState::Other),
            kind => Err(unsupported("", &kind_name(kind))),
        }
    }

    fn structure(
        &mut self,
        input: &mut Decoder<'_>,
        depth: usize,
    ) -> Result<IndividualTypeDescription, TypeObjectError> {
        let flags = input.u16()?;
        let header = input.begin_collection()?;
        let base = TypeIdentifier::decode(input)?;
        let name = type_detail(input)?;
        input.end_collection(header);
        if flags & IS_MUTABLE != 0 {
            return Err(unsupported(&name, "a mutable structure"));
        }
        let mut fields = self.inherited(&base, &name, depth)?;
        let list = input.begin_collection()?;
        let count = input.sequence_len(8, MEMBERS_MAX)?;
        for _ in 0..count {
            let member = input.begin_collection()?;
            input.u32()?;
            let flags = input.u16()?;
            let identifier = TypeIdentifier::decode(input)?;
            let field_name = input.string(NAME_BYTES_MAX)?;
            input.end_collection(member);
            if flags & IS_OPTIONAL != 0 {
                return Err(unsupported(&name, &format!("optional \"{field_name}\"")));
            }
            let field_type = self
                .field_type(&identifier, depth)
                .map_err(|error| within(error, &name, &field_name))?;
            fields.push(Field {
                name: field_name,
                field_type,
                is_key: flags & IS_KEY != 0,
                ..Field::default()
            });
        }
        input.end_collection(list);
        let ros_name = ros_type_name(&name);
        Ok(IndividualTypeDescription {
            type_name: ros_name.clone().unwrap_or_else(|| name.replace("::", "/")),
            fields,
            extensibility: match flags & IS_APPENDABLE {
                0 => Extensibility::Final,
                _ => Extensibility::Appendable,
            },
            dds_name: ros_name.is_none().then_some(name),
        })
    }

    /// The members of a base type come first.
    fn inherited(
        &mut self,
        base: &TypeIdentifier,
        name: &str,
        depth: usize,
    ) -> Result<Vec<Field>, TypeObjectError> {
        match base {
            TypeIdentifier::Primitive(TK_NONE) => Ok(Vec::new()),
            TypeIdentifier::Object(id) => {
                self.resolve(*id, depth.saturating_add(1))?;
                match self.done.get(id) {
                    Some(ResolvedState::Structure(base)) => Ok(base.fields.clone()),
                    _ => Err(unsupported(name, "a base that is not a structure")),
                }
            }
            _ => Err(unsupported(name, "a base that is not a structure")),
        }
    }

    fn alias(
        &mut self,
        input: &mut Decoder<'_>,
        depth: usize,
    ) -> Result<FieldType, TypeObjectError> {
        input.u16()?;
        let header = input.begin_collection()?;
        let name = type_detail(input)?;
        input.end_collection(header);
        let _body = input.begin_collection()?;
        input.u16()?;
        let related = TypeIdentifier::decode(input)?;
        self.field_type(&related, depth)
            .map_err(|error| within(error, &name, ""))
    }

    fn field_type(
        &mut self,
        identifier: &TypeIdentifier,
        depth: usize,
    ) -> Result<FieldType, TypeObjectError> {
        let single = |type_id| FieldType {
            type_id,
            ..FieldType::default()
        };
        match identifier {
            TypeIdentifier::Primitive(kind) => primitive(*kind)
                .map(single)
                .ok_or_else(|| unsupported("", &kind_name(*kind))),
            TypeIdentifier::String { wide, bound } => Ok(FieldType {
                type_id: match (wide, bound) {
                    (false, 0) => type_id::STRING,
                    (true, 0) => type_id::WSTRING,
                    (false, _) => type_id::BOUNDED_STRING,
                    (true, _) => type_id::BOUNDED_WSTRING,
                },
                string_capacity: u64::from(*bound),
                ..FieldType::default()
            }),
            TypeIdentifier::Object(id) => match self.resolve(*id, depth.saturating_add(1))? {
                Resolved::Structure(name) => Ok(FieldType {
                    type_id: type_id::NESTED,
                    nested_type_name: name,
                    ..FieldType::default()
                }),
                Resolved::Other(field) => Ok(field),
            },
            TypeIdentifier::Sequence { bound, element } => {
                let offset = match bound {
                    0 => type_id::UNBOUNDED_SEQUENCE,
                    _ => type_id::BOUNDED_SEQUENCE,
                };
                self.collection(element, offset, u64::from(*bound), depth)
            }
            TypeIdentifier::Array { bounds, element } => {
                let count = bounds
                    .iter()
                    .try_fold(1_u64, |count, bound| count.checked_mul(u64::from(*bound)))
                    .ok_or_else(|| unsupported("", "so large an array"))?;
                self.collection(element, type_id::ARRAY, count, depth)
            }
            TypeIdentifier::Other(kind) => Err(unsupported("", &kind_name(*kind))),
        }
    }

    fn collection(
        &mut self,
        element: &TypeIdentifier,
        offset: u8,
        capacity: u64,
        depth: usize,
    ) -> Result<FieldType, TypeObjectError> {
        let mut field = self.field_type(element, depth)?;
        if field.type_id >= type_id::ARRAY {
            return Err(unsupported("", "a collection of collections"));
        }
        field.type_id = field.type_id.saturating_add(offset);
        field.capacity = capacity;
        Ok(field)
    }
}

/// CompleteTypeDetail: two optional annotations and the name.
fn type_detail(input: &mut Decoder<'_>) -> Result<String, TypeObjectError> {
    if input.bool()? {
        // AppliedBuiltinTypeAnnotations, which is sized.
        let scope = input.begin_collection()?;
        input.end_collection(scope);
    }
    if input.bool()? {
        let scope = input.begin_collection()?;
        input.end_collection(scope);
    }
    Ok(input.string(NAME_BYTES_MAX)?)
}

/// An enumeration is serialized as a number of its bit bound.
fn enumeration(input: &mut Decoder<'_>) -> Result<FieldType, TypeObjectError> {
    input.u16()?;
    let _header = input.begin_collection()?;
    let type_id = match input.u16()? {
        0..=8 => type_id::INT8,
        9..=16 => type_id::INT16,
        _ => type_id::INT32,
    };
    Ok(FieldType {
        type_id,
        ..FieldType::default()
    })
}

fn primitive(kind: u8) -> Option<u8> {
    Some(match kind {
        TK_BOOLEAN => type_id::BOOLEAN,
        TK_BYTE | TK_UINT8 | TK_CHAR8 => type_id::UINT8,
        TK_INT8 => type_id::INT8,
        TK_INT16 => type_id::INT16,
        TK_UINT16 => type_id::UINT16,
        TK_INT32 => type_id::INT32,
        TK_UINT32 => type_id::UINT32,
        TK_INT64 => type_id::INT64,
        TK_UINT64 => type_id::UINT64,
        TK_FLOAT32 => type_id::FLOAT,
        TK_FLOAT64 => type_id::DOUBLE,
        _ => return None,
    })
}

fn kind_name(kind: u8) -> String {
    let name = match kind {
        TK_FLOAT128 => "long double",
        TK_CHAR16 => "wchar",
        0x41 => "a bitmask",
        0x52 => "a union",
        0x53 => "a bitset",
        0x62 | 0xa0 | 0xa1 => "a map",
        0xb0 => "a recursive type",
        _ => return format!("type kind 0x{kind:02x}"),
    };
    name.into()
}

fn unsupported(type_name: &str, what: &str) -> TypeObjectError {
    TypeObjectError::Unsupported {
        type_name: type_name.into(),
        what: what.into(),
    }
}

/// Adds the type and member to an error.
fn within(error: TypeObjectError, name: &str, field: &str) -> TypeObjectError {
    match error {
        TypeObjectError::Unsupported { type_name, what } if type_name.is_empty() => {
            TypeObjectError::Unsupported {
                type_name: name.into(),
                what: match field {
                    "" => what,
                    field => format!("{what} (member \"{field}\")"),
                },
            }
        }
        other => other,
    }
}
