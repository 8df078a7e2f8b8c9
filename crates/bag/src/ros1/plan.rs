//! Conversion plan from a ROS 1 message to CDR: maps the fields of one type to those of
//! the other.
//!
//! The rules are those of ros1_bridge. Fields pair by name, in lower case. Fields of only
//! one type are omitted or zero. If both types have such fields, or if paired fields
//! differ in type, the types do not match.

use std::collections::BTreeMap;

use pteros::msg::describe::{FieldType, TypeDescription, type_id};

use super::definition::{Count, Definitions, Ros1Field, Ros1Type};

/// Nesting depth of messages. Interfaces of robots have five.
const DEPTH_MAX: usize = 32;
/// The only field of an empty message.
pub(super) const PLACEHOLDER: &str = "structure_needs_at_least_one_member";

/// Plans of a type and its nested messages; the first is the outermost.
#[derive(Debug, Default)]
pub(super) struct Plan {
    pub structs: Vec<StructPlan>,
}

/// Reads and writes one message.
#[derive(Debug, Default)]
pub(super) struct StructPlan {
    pub source: Vec<SourceField>,
    pub target: Vec<TargetField>,
    /// Whether the target has its fields in the order of the source.
    pub is_in_order: bool,
    /// Serialized size of the source, if fixed.
    pub fixed_bytes: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SourceField {
    pub kind: SourceKind,
    pub count: Count,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum SourceKind {
    Fixed(usize),
    String,
    Struct(usize),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TargetField {
    pub from: Option<ValueSource>,
    pub kind: TargetKind,
    pub count: TargetCount,
}

/// Source of a field's value.
#[derive(Clone, Copy, Debug)]
pub(super) struct ValueSource {
    pub field: usize,
    /// A field within that field, if that is a message.
    pub inner: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum TargetKind {
    /// A number, whose size is its alignment.
    Number(usize),
    /// Seconds and nanoseconds, four bytes each.
    Stamp,
    String,
    Struct(usize),
    /// Log levels 1, 2, 4, 8, 16 of ROS 1 map to 10 to 50.
    LogLevel,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum TargetCount {
    One,
    Fixed(usize),
    /// Sequence with its bound; 0 for none.
    Sequence(u64),
}

impl Plan {
    /// Plans the conversion of a ROS 1 message to the described type.
    ///
    /// # Errors
    /// The types do not match: with the reason.
    pub(super) fn new(
        definitions: &Definitions,
        type_name: &str,
        description: &TypeDescription,
    ) -> Result<Self, String> {
        let mut planner = Planner {
            definitions,
            description,
            plan: Self::default(),
            known: BTreeMap::new(),
            depth: 0,
        };
        let target = description.type_description.type_name.as_str();
        planner.pair(Some(type_name), Some(target))?;
        Ok(planner.plan)
    }
}

struct Planner<'a> {
    definitions: &'a Definitions,
    description: &'a TypeDescription,
    plan: Plan,
    /// Plans by the names of both types; `None` for a type that is only skipped, or only
    /// filled.
    known: BTreeMap<(Option<&'a str>, Option<&'a str>), usize>,
    depth: usize,
}

impl<'a> Planner<'a> {
    fn pair(&mut self, source: Option<&'a str>, target: Option<&'a str>) -> Result<usize, String> {
        if let Some(index) = self.known.get(&(source, target)) {
            return Ok(*index);
        }
        if self.depth >= DEPTH_MAX {
            let name = source.or(target).unwrap_or_default();
            return Err(format!("{name} is nested more than {DEPTH_MAX} times"));
        }
        self.depth += 1;
        let index = self.plan.structs.len();
        self.plan.structs.push(StructPlan::default());
        let planned = self.plan_struct(source, target)?;
        if let Some(slot) = self.plan.structs.get_mut(index) {
            *slot = planned;
        }
        self.depth -= 1;
        // Only finished plans are cached. A recursive type ends at the depth limit.
        self.known.insert((source, target), index);
        Ok(index)
    }

    fn plan_struct(
        &mut self,
        source: Option<&'a str>,
        target: Option<&'a str>,
    ) -> Result<StructPlan, String> {
        let definitions = self.definitions;
        let source_fields = match source {
            Some(name) => definitions.fields(name)?,
            None => &[],
        };
        let target_fields = match target {
            Some(name) => self.target_fields(name)?,
            None => &[],
        };
        let mut plan = StructPlan {
            is_in_order: true,
            ..StructPlan::default()
        };
        let mut nested_pairs = BTreeMap::new();
        let mut extra_target = None;
        let mut last = None;
        for field in target_fields {
            let paired = source_fields
                .iter()
                .position(|known| is_named(&known.name, &field.name));
            let mut from = paired.map(|field| ValueSource { field, inner: None });
            let planned = match (from, source, target) {
                (Some(found), ..) => {
                    let known = source_fields.get(found.field);
                    let known = known.ok_or("a field that is not there")?;
                    let mut planned = self.paired_field(known, &field.field_type)?;
                    if let TargetKind::Struct(index) = planned.kind {
                        nested_pairs.insert(found.field, index);
                    }
                    let is_log = source == Some("rosgraph_msgs/Log")
                        && target == Some("rcl_interfaces/msg/Log");
                    if is_log && field.name == "level" {
                        planned.kind = TargetKind::LogLevel;
                    }
                    planned
                }
                // The stamp of a log message was in its header.
                (None, Some("rosgraph_msgs/Log"), Some("rcl_interfaces/msg/Log"))
                    if field.name == "stamp" =>
                {
                    from = self.stamp_of_header(source_fields);
                    plan.is_in_order = false;
                    TargetField {
                        from,
                        kind: TargetKind::Stamp,
                        count: TargetCount::One,
                    }
                }
                _ => {
                    if field.name != PLACEHOLDER {
                        extra_target = Some(field.name.as_str());
                    }
                    self.empty_field(&field.field_type)?
                }
            };
            if let Some(found) = from {
                plan.is_in_order &= last.is_none_or(|last| found.field > last);
                last = Some(found.field);
            }
            plan.target.push(TargetField { from, ..planned });
        }
        for (at, field) in source_fields.iter().enumerate() {
            let kind = match (&field.ty, nested_pairs.get(&at)) {
                (_, Some(index)) => SourceKind::Struct(*index),
                (Ros1Type::Message(name), None) => {
                    SourceKind::Struct(self.pair(Some(name.as_str()), None)?)
                }
                (Ros1Type::String, None) => SourceKind::String,
                (ty, None) => SourceKind::Fixed(ty.fixed_bytes().unwrap_or(0)),
            };
            plan.source.push(SourceField {
                kind,
                count: field.count,
            });
        }
        plan.fixed_bytes = self.fixed_bytes(&plan.source);
        let is_used = |at: usize| {
            let mut used = plan.target.iter().filter_map(|target| target.from);
            used.any(|from| from.field == at)
        };
        let mut numbered = source_fields.iter().enumerate();
        let extra_source = numbered.find(|(at, _)| !is_used(*at));
        let is_log = source == Some("rosgraph_msgs/Log");
        if let (Some((_, name)), Some(other)) = (extra_source, extra_target)
            && target.is_some()
            && !is_log
        {
            return Err(format!(
                "{} has the field {}, and {} has {other} instead",
                source.unwrap_or_default(),
                name.name,
                target.unwrap_or_default()
            ));
        }
        Ok(plan)
    }

    fn fixed_bytes(&self, fields: &[SourceField]) -> Option<usize> {
        let sizes = fields.iter().map(|field| {
            // A field without elements has no bytes, whatever its type.
            if matches!(field.count, Count::Fixed(0)) {
                return Some(0);
            }
            let element = match field.kind {
                SourceKind::Fixed(bytes) => bytes,
                SourceKind::String => return None,
                SourceKind::Struct(index) => self.plan.structs.get(index)?.fixed_bytes?,
            };
            match field.count {
                Count::One => Some(element),
                Count::Fixed(count) => element.checked_mul(count),
                Count::Variable => None,
            }
        });
        sizes.reduce(|a, b| a?.checked_add(b?)).unwrap_or(Some(0))
    }

    fn target_fields(&self, name: &str) -> Result<&'a [pteros::msg::describe::Field], String> {
        let outer = &self.description.type_description;
        let all = std::iter::once(outer).chain(&self.description.referenced);
        let found = all.into_iter().find(|ty| ty.type_name == name);
        found
            .map(|ty| ty.fields.as_slice())
            .ok_or_else(|| format!("{name} is not described"))
    }

    fn stamp_of_header(&self, fields: &[Ros1Field]) -> Option<ValueSource> {
        let field = fields.iter().position(|field| field.name == "header")?;
        let header = self.definitions.fields("std_msgs/Header").ok()?;
        let inner = header.iter().position(|field| field.ty == Ros1Type::Time);
        inner.map(|inner| ValueSource {
            field,
            inner: Some(inner),
        })
    }

    fn paired_field(
        &mut self,
        source: &'a Ros1Field,
        target: &'a FieldType,
    ) -> Result<TargetField, String> {
        let (element, count) = element_and_count(target);
        let differ = || {
            Err(format!(
                "the field {} has another type in ROS 2",
                source.name
            ))
        };
        let fits = match (source.count, count) {
            (Count::One, TargetCount::One) | (Count::Variable, TargetCount::Sequence(_)) => true,
            (Count::Fixed(have), TargetCount::Fixed(want)) => have == want,
            _ => false,
        };
        if !fits {
            return differ();
        }
        let nested = target.nested_type_name.as_str();
        let kind = match (&source.ty, element) {
            (Ros1Type::Time, type_id::NESTED) if nested == "builtin_interfaces/msg/Time" => {
                TargetKind::Stamp
            }
            (Ros1Type::Duration, type_id::NESTED)
                if nested == "builtin_interfaces/msg/Duration" =>
            {
                TargetKind::Stamp
            }
            (Ros1Type::Message(name), type_id::NESTED) => {
                TargetKind::Struct(self.pair(Some(name.as_str()), Some(nested))?)
            }
            (Ros1Type::String, type_id::STRING | type_id::BOUNDED_STRING) => TargetKind::String,
            (Ros1Type::Bool, type_id::BOOLEAN)
            | (Ros1Type::Int8 | Ros1Type::Uint8, type_id::INT8 | type_id::UINT8 | type_id::BYTE) => {
                TargetKind::Number(1)
            }
            (Ros1Type::Int16, type_id::INT16) | (Ros1Type::Uint16, type_id::UINT16) => {
                TargetKind::Number(2)
            }
            (Ros1Type::Int32, type_id::INT32)
            | (Ros1Type::Uint32, type_id::UINT32)
            | (Ros1Type::Float32, type_id::FLOAT) => TargetKind::Number(4),
            (Ros1Type::Int64, type_id::INT64)
            | (Ros1Type::Uint64, type_id::UINT64)
            | (Ros1Type::Float64, type_id::DOUBLE) => TargetKind::Number(8),
            _ => return differ(),
        };
        Ok(TargetField {
            from: None,
            kind,
            count,
        })
    }

    /// A field that the source lacks.
    fn empty_field(&mut self, target: &'a FieldType) -> Result<TargetField, String> {
        let (element, count) = element_and_count(target);
        let kind = match element {
            type_id::NESTED => {
                let name = target.nested_type_name.as_str();
                TargetKind::Struct(self.pair(None, Some(name))?)
            }
            type_id::INT8 | type_id::UINT8 | type_id::BYTE | type_id::BOOLEAN => {
                TargetKind::Number(1)
            }
            type_id::INT16 | type_id::UINT16 => TargetKind::Number(2),
            type_id::INT32 | type_id::UINT32 | type_id::FLOAT => TargetKind::Number(4),
            type_id::INT64 | type_id::UINT64 | type_id::DOUBLE => TargetKind::Number(8),
            type_id::STRING | type_id::BOUNDED_STRING => TargetKind::String,
            other => return Err(format!("type id {other}, which ROS 1 does not have")),
        };
        Ok(TargetField {
            from: None,
            kind,
            count,
        })
    }
}

/// Whether a ROS 1 field has this name in ROS 2.
fn is_named(source: &str, target: &str) -> bool {
    source.eq_ignore_ascii_case(target) || ros2_field_name(source) == target
}

/// Name of a field in ROS 2: lower case, single underscores, none at the end.
pub(super) fn ros2_field_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let words: Vec<&str> = lower.split('_').filter(|word| !word.is_empty()).collect();
    words.join("_")
}

/// Element type and number of elements of a field.
pub(super) fn element_and_count(target: &FieldType) -> (u8, TargetCount) {
    let capacity = usize::try_from(target.capacity).unwrap_or(usize::MAX);
    let (kind, count) = match target.type_id {
        id if id > type_id::UNBOUNDED_SEQUENCE => {
            (type_id::UNBOUNDED_SEQUENCE, TargetCount::Sequence(0))
        }
        id if id > type_id::BOUNDED_SEQUENCE => (
            type_id::BOUNDED_SEQUENCE,
            TargetCount::Sequence(target.capacity),
        ),
        id if id > type_id::ARRAY => (type_id::ARRAY, TargetCount::Fixed(capacity)),
        _ => (0, TargetCount::One),
    };
    (target.type_id - kind, count)
}
