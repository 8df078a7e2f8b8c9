//! TypeObject: types for the type compatibility check of other DDS vendors (XTypes
//! 1.3).
//!
//! [`TypeObjects`] are made from a [`TypeDescription`]: for the type and each type
//! that it refers to a minimal object (for assignability) and a complete one (with
//! names). The hash of its object identifies a type. [`TypeObjects::information`]
//! is what discovery announces, and [`lookup`] has the messages of the TypeLookup
//! service, which sends objects. [`type_description`] converts objects to a
//! [`TypeDescription`].
//!
//! Names are those of ROS 2: `std_msgs::msg::dds_::String_` for a type, `data` for
//! its member, as `rmw_cyclonedds` has them; its numbers of members count from 0,
//! and `byte` and `char` are its `uint8`.
//!
//! XTypes 1.3 §7.3.4 (model), §7.6.3.2.1 (TypeInformation), §7.3.4.8 (hashes). All
//! is XCDR2, little endian.

mod identifier;
mod information;
mod kinds;
pub mod lookup;
mod read;
mod structure;

pub use identifier::{EquivalenceHash, EquivalenceKind, TypeIdentifier, TypeObjectId};
pub use information::{Dependency, INFORMATION_BYTES_MAX, TypeInformation};
pub use read::{TypeObjectError, type_description};

use crate::cdr::{Encapsulation, Encoder, Endian, Representation};
use crate::describe::{Field, IndividualTypeDescription, TypeDescription, type_id};
use crate::message::dds_type_name;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Structures nest at most as deep.
const DEPTH_MAX: usize = 64;

/// How everything here is written.
const ENCODING: Encapsulation = Encapsulation::plain(Representation::Xcdr2, Endian::Little);

/// A serialized TypeObject and its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeObject {
    /// The hash of `bytes`.
    pub id: TypeObjectId,
    /// Without encapsulation header; begins with its size (DHEADER).
    pub bytes: Arc<[u8]>,
}

/// One structure in both forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectPair {
    /// For assignability.
    pub minimal: TypeObject,
    /// The same with names.
    pub complete: TypeObject,
}

impl ObjectPair {
    /// The object of one form.
    pub fn of(&self, form: EquivalenceKind) -> &TypeObject {
        match form {
            EquivalenceKind::Minimal => &self.minimal,
            EquivalenceKind::Complete => &self.complete,
        }
    }
}

/// The objects of a type and of all types that it refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeObjects {
    /// The type's name on the wire.
    pub name: String,
    /// The type itself.
    pub own: ObjectPair,
    /// All types reachable from it, by name, each once.
    pub referenced: Vec<ObjectPair>,
}

impl TypeObjects {
    /// The objects of a described type.
    ///
    /// `None` where there are none: a type that is referred to is not
    /// described or contains itself, structures nest deeper than 64, or a
    /// bound exceeds 32 bits.
    pub fn new(description: &TypeDescription) -> Option<Self> {
        let mut builder = Builder {
            described: description
                .referenced
                .iter()
                .map(|ty| (ty.type_name.as_str(), ty))
                .collect(),
            built: BTreeMap::new(),
        };
        let own = builder.pair(&description.type_description, 0)?;
        Some(Self {
            name: dds_name(&description.type_description),
            own,
            referenced: builder.built.into_values().collect(),
        })
    }

    /// All objects: minimal and complete, the type's own first.
    pub fn iter(&self) -> impl Iterator<Item = &TypeObject> {
        core::iter::once(&self.own)
            .chain(&self.referenced)
            .flat_map(|pair| [&pair.minimal, &pair.complete])
    }

    /// The value of PID_TYPE_INFORMATION, which discovery announces, without
    /// encapsulation header.
    pub fn information(&self) -> Vec<u8> {
        information::encode(self)
    }
}

/// Whether announcing the type is safe with all peers.
///
/// It is not for 8-bit integers or wide strings: Cyclone DDS before 11 does not
/// support those kinds and crashes on their objects, which it requests when its own
/// type differs (it takes `uint8` for an octet). Nor for appendable types: Cyclone
/// does not match types whose announced extensibilities differ, and IDL compilers
/// differ in their defaults. For the same reason types with their own DDS name are
/// not announced, because other vendors define them. Types without announcement
/// match by name.
pub fn is_announced(description: &TypeDescription) -> bool {
    use crate::describe::Extensibility::Final;
    let is_known_everywhere = |field: &Field| {
        !matches!(
            field.field_type.type_id % type_id::ARRAY,
            type_id::INT8
                | type_id::UINT8
                | type_id::BYTE
                | type_id::WSTRING
                | type_id::BOUNDED_WSTRING
        )
    };
    core::iter::once(&description.type_description)
        .chain(&description.referenced)
        .all(|ty| {
            ty.extensibility == Final
                && ty.dds_name.is_none()
                && ty.fields.iter().all(is_known_everywhere)
        })
}

/// The name of a type in DDS.
fn dds_name(ty: &IndividualTypeDescription) -> String {
    match &ty.dds_name {
        Some(name) => name.clone(),
        None => dds_type_name(&ty.type_name),
    }
}

struct Builder<'a> {
    described: BTreeMap<&'a str, &'a IndividualTypeDescription>,
    built: BTreeMap<String, ObjectPair>,
}

impl<'a> Builder<'a> {
    fn pair(&mut self, ty: &'a IndividualTypeDescription, depth: usize) -> Option<ObjectPair> {
        if depth > DEPTH_MAX {
            return None;
        }
        for field in &ty.fields {
            let name = field.field_type.nested_type_name.as_str();
            if field.field_type.type_id % type_id::ARRAY != type_id::NESTED
                || self.built.contains_key(name)
            {
                continue;
            }
            let nested = *self.described.get(name)?;
            let pair = self.pair(nested, depth.saturating_add(1))?;
            self.built.insert(name.into(), pair);
        }
        Some(ObjectPair {
            minimal: structure::object(ty, EquivalenceKind::Minimal, &self.built)?,
            complete: structure::object(ty, EquivalenceKind::Complete, &self.built)?,
        })
    }
}

/// Writes in this module's encoding, without header.
fn written(write: impl FnOnce(&mut Encoder<'_>)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut out = Encoder::to_vec(&mut bytes, ENCODING.representation, ENCODING.endian);
    write(&mut out);
    bytes
}
