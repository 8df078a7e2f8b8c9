//! Types that ROS 2 derives from services and actions, and descriptions.
//!
//! A service gives `_Request`, `_Response` and `_Event`; an action gives `_Goal`,
//! `_Result`, `_Feedback`, the services `_SendGoal` and `_GetResult` with their
//! three types each, and `_FeedbackMessage` (`rosidl_parser` definitions,
//! `rosidl_generator_type_description`).

use super::{InterfaceLibrary, LibraryError, split_full_name};
use crate::describe::{Field, FieldType, IndividualTypeDescription, TypeDescription};
use crate::schema::{
    BaseType, FieldSpec, InterfaceFile, InterfaceKind, Shape, StructSpec, TypeSpec,
};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

const SERVICE_SUFFIXES: [&str; 4] = ["", "_Request", "_Response", "_Event"];

const ACTION_SUFFIXES: [&str; 13] = [
    "",
    "_Goal",
    "_Result",
    "_Feedback",
    "_SendGoal",
    "_SendGoal_Request",
    "_SendGoal_Response",
    "_SendGoal_Event",
    "_GetResult",
    "_GetResult_Request",
    "_GetResult_Response",
    "_GetResult_Event",
    "_FeedbackMessage",
];

/// Nested messages deeper than this are refused, since decoders refuse them;
/// real ones stay below ten.
pub(super) const DEPTH_MAX: usize = crate::cdr::DEPTH_MAX as usize;

pub(super) fn names_of(file: &InterfaceFile) -> Vec<String> {
    let suffixes: &[&str] = match file.kind {
        InterfaceKind::Message => &[""],
        InterfaceKind::Service => &SERVICE_SUFFIXES,
        InterfaceKind::Action => &ACTION_SUFFIXES,
    };
    suffixes
        .iter()
        .map(|suffix| format!("{}/{}/{}{suffix}", file.package, file.kind, file.name))
        .collect()
}

/// A described structure: fields by (name, type, default), the types with full names.
struct Structure {
    spec: StructSpec,
    /// Full names of nested types, per field; empty where the field has none.
    nested: Vec<String>,
    origin: String,
}

pub(super) fn structure(
    library: &InterfaceLibrary,
    name: &str,
) -> Result<StructSpec, LibraryError> {
    let full = full_type_name(library, name);
    find_structure(library, &full, None).map(|found| found.spec)
}

pub(super) fn describe(
    library: &InterfaceLibrary,
    name: &str,
) -> Result<TypeDescription, LibraryError> {
    let full = full_type_name(library, name);
    let mut known = BTreeMap::new();
    collect(library, &full, None, &mut known, &mut Vec::new())?;
    let type_description = match known.remove(&full) {
        Some(found) => found,
        None => return Err(library.unknown(&full, None)),
    };
    Ok(TypeDescription {
        type_description,
        referenced: known.into_values().collect(),
    })
}

/// Adds `std_msgs/String`'s kind, for derived names too.
fn full_type_name(library: &InterfaceLibrary, name: &str) -> String {
    if split_full_name(name).is_some() {
        return name.to_string();
    }
    let base = name.split('_').next().unwrap_or(name);
    let Some((package, short)) = name.split_once('/') else {
        return name.to_string();
    };
    if let Some(full) = library.full_name(name) {
        return full;
    }
    // `pkg_a/Name_Request`: the definition's name ends at the first `_` behind the slash.
    let definition = short.split('_').next().unwrap_or(base);
    match library.full_name(&format!("{package}/{definition}")) {
        Some(full) => format!(
            "{full}{}",
            short.strip_prefix(definition).unwrap_or_default()
        ),
        None => name.to_string(),
    }
}

/// Adds `full` and all types it refers to to `known`.
fn collect(
    library: &InterfaceLibrary,
    full: &str,
    used_by: Option<(&str, u32)>,
    known: &mut BTreeMap<String, IndividualTypeDescription>,
    path: &mut Vec<String>,
) -> Result<(), LibraryError> {
    if let Some(from) = path.iter().position(|above| above == full) {
        let mut circle = path.split_off(from);
        circle.push(full.to_string());
        return Err(LibraryError::Recursive(circle));
    }
    if path.len() >= DEPTH_MAX {
        return Err(LibraryError::TooDeep(full.to_string()));
    }
    if known.contains_key(full) {
        return Ok(());
    }
    let found = find_structure(library, full, used_by)?;
    path.push(full.to_string());
    for (field, nested) in found.spec.fields.iter().zip(&found.nested) {
        if !nested.is_empty() {
            collect(
                library,
                nested,
                Some((&found.origin, field.line)),
                known,
                path,
            )?;
        }
    }
    path.pop();
    known.insert(full.to_string(), individual(full, &found));
    Ok(())
}

/// Finds the definition behind a type name and picks or builds the structure.
fn find_structure(
    library: &InterfaceLibrary,
    full: &str,
    used_by: Option<(&str, u32)>,
) -> Result<Structure, LibraryError> {
    let unknown = || library.unknown(full, used_by);
    let (package, kind, name) = split_full_name(full).ok_or_else(unknown)?;
    let (definition, suffix) = match kind {
        InterfaceKind::Message => (name, ""),
        // Interface names have no underscores, so the first one starts the suffix.
        _ => name.split_at(name.find('_').unwrap_or(name.len())),
    };
    let definition_name = format!("{package}/{kind}/{definition}");
    if !library.has(&definition_name) {
        return Err(unknown());
    }
    let file = library.parse_full(&definition_name)?;
    let origin = library
        .origin(&definition_name)
        .unwrap_or_default()
        .to_string();
    let spec = match kind {
        InterfaceKind::Message => file.parts.into_iter().next(),
        InterfaceKind::Service => service_part(file, suffix),
        InterfaceKind::Action => action_part(file, suffix),
    }
    .ok_or_else(unknown)?;
    let nested = spec
        .fields
        .iter()
        .map(|field| nested_full_name(&field.ty.base))
        .collect();
    Ok(Structure {
        spec,
        nested,
        origin,
    })
}

/// Derived types are written as package `p/srv` in fields built here, since
/// no package name holds a slash; everything else is a message.
fn nested_full_name(base: &BaseType) -> String {
    match base {
        BaseType::Nested { package, name } if package.contains('/') => format!("{package}/{name}"),
        BaseType::Nested { package, name } => format!("{package}/msg/{name}"),
        _ => String::new(),
    }
}

fn service_part(file: InterfaceFile, suffix: &str) -> Option<StructSpec> {
    let package = format!("{}/srv", file.package);
    let mut parts = file.parts.into_iter();
    match suffix {
        "_Request" => parts.next(),
        "_Response" => parts.nth(1),
        _ => service_derived(&package, &file.name, suffix),
    }
}

/// The service itself and its event, for services of `.srv` files and actions.
fn service_derived(package: &str, name: &str, suffix: &str) -> Option<StructSpec> {
    let own = |end: &str| nested(package, &format!("{name}{end}"));
    match suffix {
        "" => Some(built([
            field("request_message", own("_Request"), Shape::Single),
            field("response_message", own("_Response"), Shape::Single),
            field("event_message", own("_Event"), Shape::Single),
        ])),
        "_Event" => Some(built([
            field(
                "info",
                nested("service_msgs", "ServiceEventInfo"),
                Shape::Single,
            ),
            field("request", own("_Request"), Shape::Bounded(1)),
            field("response", own("_Response"), Shape::Bounded(1)),
        ])),
        _ => None,
    }
}

fn action_part(file: InterfaceFile, suffix: &str) -> Option<StructSpec> {
    let package = format!("{}/action", file.package);
    let name = file.name;
    let mut parts = file.parts.into_iter();
    let single = |field_name: &str, end: &str| {
        field(
            field_name,
            nested(&package, &format!("{name}{end}")),
            Shape::Single,
        )
    };
    let goal_id = || {
        field(
            "goal_id",
            nested("unique_identifier_msgs", "UUID"),
            Shape::Single,
        )
    };
    let stamp = || field("stamp", nested("builtin_interfaces", "Time"), Shape::Single);
    match suffix {
        "_Goal" => parts.next(),
        "_Result" => parts.nth(1),
        "_Feedback" => parts.nth(2),
        "" => Some(built([
            single("goal", "_Goal"),
            single("result", "_Result"),
            single("feedback", "_Feedback"),
            single("send_goal_service", "_SendGoal"),
            single("get_result_service", "_GetResult"),
            single("feedback_message", "_FeedbackMessage"),
        ])),
        "_SendGoal_Request" => Some(built([goal_id(), single("goal", "_Goal")])),
        "_SendGoal_Response" => Some(built([
            field("accepted", BaseType::Bool, Shape::Single),
            stamp(),
        ])),
        "_GetResult_Request" => Some(built([goal_id()])),
        "_GetResult_Response" => Some(built([
            field("status", BaseType::Int8, Shape::Single),
            single("result", "_Result"),
        ])),
        "_FeedbackMessage" => Some(built([goal_id(), single("feedback", "_Feedback")])),
        _ => {
            let (service, rest) = ["_SendGoal", "_GetResult"]
                .into_iter()
                .find_map(|service| Some((service, suffix.strip_prefix(service)?)))?;
            service_derived(&package, &format!("{name}{service}"), rest)
        }
    }
}

fn built<const N: usize>(fields: [FieldSpec; N]) -> StructSpec {
    StructSpec {
        fields: fields.into(),
        ..StructSpec::default()
    }
}

fn field(name: &str, base: BaseType, shape: Shape) -> FieldSpec {
    FieldSpec {
        name: name.to_string(),
        ty: TypeSpec { base, shape },
        default: None,
        is_key: false,
        comments: Vec::new(),
        line: 1,
    }
}

fn nested(package: &str, name: &str) -> BaseType {
    BaseType::Nested {
        package: package.to_string(),
        name: name.to_string(),
    }
}

fn individual(full: &str, found: &Structure) -> IndividualTypeDescription {
    let mut fields: Vec<Field> = found
        .spec
        .fields
        .iter()
        .zip(&found.nested)
        .map(|(field, nested)| Field {
            name: field.name.clone(),
            field_type: field_type(&field.ty, nested),
            default_value: field
                .default
                .as_ref()
                .map(ToString::to_string)
                .unwrap_or_default(),
            is_key: field.is_key,
        })
        .collect();
    if fields.is_empty() {
        // IDL has no empty structures; ROS 2 puts one octet in (rosidl_parser).
        let ty = TypeSpec {
            base: BaseType::Uint8,
            shape: Shape::Single,
        };
        fields = vec![Field {
            name: "structure_needs_at_least_one_member".to_string(),
            field_type: field_type(&ty, ""),
            ..Field::default()
        }];
    }
    IndividualTypeDescription {
        type_name: full.to_string(),
        fields,
        extensibility: found.spec.extensibility,
        dds_name: found.spec.dds_name.clone(),
    }
}

/// Type ids of `type_description_interfaces/msg/FieldType`.
fn field_type(ty: &TypeSpec, nested: &str) -> FieldType {
    let base: u8 = match ty.base {
        BaseType::Nested { .. } => 1,
        BaseType::Int8 => 2,
        BaseType::Uint8 | BaseType::Char => 3,
        BaseType::Int16 => 4,
        BaseType::Uint16 => 5,
        BaseType::Int32 => 6,
        BaseType::Uint32 => 7,
        BaseType::Int64 => 8,
        BaseType::Uint64 => 9,
        BaseType::Float32 => 10,
        BaseType::Float64 => 11,
        BaseType::Bool => 15,
        BaseType::Byte => 16,
        BaseType::String(None) => 17,
        BaseType::WString(None) => 18,
        BaseType::String(Some(_)) => 21,
        BaseType::WString(Some(_)) => 22,
    };
    let (offset, capacity) = match ty.shape {
        Shape::Single => (0, 0),
        Shape::Array(count) => (48, count),
        Shape::Bounded(bound) => (96, bound),
        Shape::Unbounded => (144, 0),
    };
    let string_capacity = match ty.base {
        BaseType::String(bound) | BaseType::WString(bound) => bound.unwrap_or(0),
        _ => 0,
    };
    FieldType {
        type_id: base.saturating_add(offset),
        capacity: capacity.into(),
        string_capacity: string_capacity.into(),
        nested_type_name: nested.to_string(),
    }
}
