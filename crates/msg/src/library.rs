//! Interface library: a set of interface definitions by name, and the types derived
//! from them.
//!
//! A library holds texts. Describing a type parses its definitions, adds the types
//! that ROS 2 derives from services and actions (`_Request`, `_Event`, `_SendGoal`
//! …) and collects every referenced type. Nothing is cached: a description costs
//! some tens of microseconds and is made once per type. A library reads no files
//! itself; see `folder` (feature `std`).

mod derived;

use crate::describe::TypeDescription;
use crate::hash::{TypeHash, rihs01};
use crate::schema::{self, BaseType, InterfaceFile, InterfaceKind, SchemaError, StructSpec};
use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// Interface definitions by full name (`std_msgs/msg/String`).
///
/// Cloning copies names, not static texts, so a program may start from the
/// standard library and add its own. Holds whatever is put in: the caller
/// decides how much that is.
#[derive(Clone, Debug, Default)]
pub struct InterfaceLibrary {
    definitions: BTreeMap<String, Definition>,
    /// Lists that are part of the program, sorted by name and read in place.
    /// The later one wins, and a definition above wins over all.
    lists: Vec<&'static [(&'static str, &'static str)]>,
}

/// A definition that was found.
struct FoundDefinition<'l> {
    text: &'l str,
    origin: &'l str,
    unreadable: Option<&'l str>,
}

#[derive(Clone, Debug)]
struct Definition {
    text: Cow<'static, str>,
    origin: Cow<'static, str>,
    /// Why there is no text, where its file could not be read.
    unreadable: Option<String>,
}

impl InterfaceLibrary {
    /// A library without definitions.
    pub const fn new() -> Self {
        Self {
            definitions: BTreeMap::new(),
            lists: Vec::new(),
        }
    }

    fn get(&self, full: &str) -> Option<FoundDefinition<'_>> {
        if let Some(definition) = self.definitions.get(full) {
            return Some(FoundDefinition {
                text: &definition.text,
                origin: &definition.origin,
                unreadable: definition.unreadable.as_deref(),
            });
        }
        let (origin, text) = self.listed(full)?;
        Some(FoundDefinition {
            text,
            origin,
            unreadable: None,
        })
    }

    fn listed(&self, full: &str) -> Option<(&'static str, &'static str)> {
        let find = |list: &&'static [(&'static str, &'static str)]| {
            let at = list.binary_search_by_key(&full, |(name, _)| *name).ok()?;
            list.get(at).copied()
        };
        self.lists.iter().rev().find_map(find)
    }

    /// Whether there is such a definition.
    fn has(&self, full: &str) -> bool {
        self.get(full).is_some()
    }

    /// Adds or replaces one definition. `origin` names the text in errors.
    /// The text is looked at when it is needed, so mistakes show up there.
    pub fn insert_text(
        &mut self,
        package: &str,
        kind: InterfaceKind,
        name: &str,
        text: impl Into<Cow<'static, str>>,
        origin: impl Into<Cow<'static, str>>,
    ) {
        self.definitions.insert(
            format!("{package}/{kind}/{name}"),
            Definition {
                text: text.into(),
                origin: origin.into(),
                unreadable: None,
            },
        );
    }

    /// Adds or replaces a definition whose text cannot be read. It is listed, and
    /// using it fails with `reason`. One bad file of a large workspace does not
    /// affect the others.
    pub fn insert_unreadable(
        &mut self,
        package: &str,
        kind: InterfaceKind,
        name: &str,
        origin: impl Into<Cow<'static, str>>,
        reason: impl Into<String>,
    ) {
        self.definitions.insert(
            format!("{package}/{kind}/{name}"),
            Definition {
                text: Cow::Borrowed(""),
                origin: origin.into(),
                unreadable: Some(reason.into()),
            },
        );
    }

    /// Adds definitions by full name, `("std_msgs/msg/String", "string data")`,
    /// as generated modules hold them. Entries with other names are left out. A
    /// list sorted by name is read where it is: nothing is copied.
    pub fn insert_definitions(&mut self, definitions: &'static [(&'static str, &'static str)]) {
        let is_sorted = definitions.is_sorted_by(|one, next| one.0 < next.0);
        if is_sorted && definitions.iter().all(|(full, _)| is_full_name(full)) {
            self.definitions.retain(|name, _| {
                definitions
                    .binary_search_by_key(&name.as_str(), |d| d.0)
                    .is_err()
            });
            self.lists.push(definitions);
            return;
        }
        for (full, text) in definitions {
            if let Some((package, kind, name)) = split_full_name(full) {
                self.insert_text(package, kind, name, *text, *full);
            }
        }
    }

    /// Adds everything of `other`, which takes precedence for equal names.
    pub fn merge(&mut self, other: &InterfaceLibrary) {
        for list in &other.lists {
            self.insert_definitions(list);
        }
        for (name, definition) in &other.definitions {
            self.definitions.insert(name.clone(), definition.clone());
        }
    }

    /// Adds one definition of `other` by its full name, if it has it.
    pub fn copy_definition(&mut self, other: &InterfaceLibrary, full: &str) {
        if let Some(definition) = other.definitions.get(full) {
            self.definitions
                .insert(full.to_string(), definition.clone());
        } else if let Some((origin, text)) = other.listed(full)
            && let Some((package, kind, name)) = split_full_name(full)
        {
            self.insert_text(package, kind, name, text, origin);
        }
    }

    /// Packages that one definition refers to, its own left out, those of its
    /// derived types included (`service_msgs`, `unique_identifier_msgs` …).
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn packages_used_by(&self, name: &str) -> Result<Vec<String>, LibraryError> {
        let file = self.file(name)?;
        let derived: &[&str] = match file.kind {
            InterfaceKind::Message => &[],
            InterfaceKind::Service => &["service_msgs"],
            InterfaceKind::Action => &[
                "service_msgs",
                "unique_identifier_msgs",
                "builtin_interfaces",
            ],
        };
        let fields = file.parts.iter().flat_map(|part| &part.fields);
        let nested = fields.filter_map(|field| match &field.ty.base {
            BaseType::Nested { package, .. } => Some(package.clone()),
            _ => None,
        });
        let mut packages: Vec<String> = nested.collect();
        packages.extend(derived.iter().map(ToString::to_string));
        packages.retain(|package| *package != file.package);
        packages.sort();
        packages.dedup();
        Ok(packages)
    }

    /// Number of definitions.
    pub fn len(&self) -> usize {
        self.names().count()
    }

    /// Whether there are no definitions.
    pub fn is_empty(&self) -> bool {
        self.names().next().is_none()
    }

    /// Full names of all definitions, sorted. Derived types are not listed.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let listed = self.lists.iter().copied().flatten().map(|(name, _)| *name);
        let own = self.definitions.keys().map(String::as_str);
        let mut names: Vec<&str> = own.chain(listed).collect();
        names.sort_unstable();
        names.dedup();
        names.into_iter()
    }

    /// Names of all packages, sorted, each once.
    pub fn packages(&self) -> Vec<&str> {
        let mut packages: Vec<&str> = self
            .names()
            .filter_map(|name| name.split('/').next())
            .collect();
        packages.dedup();
        packages
    }

    /// The definition's text as it was put in. `std_msgs/String` is taken for
    /// `std_msgs/msg/String`, or for the service or action if only that exists.
    /// `None` also where it could not be read.
    pub fn text(&self, name: &str) -> Option<&str> {
        let full = self.full_name(name)?;
        let found = self.get(&full)?;
        found.unreadable.is_none().then_some(found.text)
    }

    /// Where the definition came from: a path, or the name its source gave.
    pub fn origin(&self, name: &str) -> Option<&str> {
        let full = self.full_name(name)?;
        self.get(&full).map(|found| found.origin)
    }

    /// The full name of a definition written in full or without its kind.
    pub fn full_name(&self, name: &str) -> Option<String> {
        if self.has(name) {
            return Some(name.to_string());
        }
        let (package, short) = name.split_once('/')?;
        InterfaceKind::ALL
            .into_iter()
            .map(|kind| format!("{package}/{kind}/{short}"))
            .find(|full| self.has(full))
    }

    /// Parses one definition.
    ///
    /// # Errors
    /// The name is unknown, or the text has a mistake or could not be read.
    pub fn file(&self, name: &str) -> Result<InterfaceFile, LibraryError> {
        let full = self
            .full_name(name)
            .ok_or_else(|| self.unknown(name, None))?;
        self.parse_full(&full)
    }

    fn parse_full(&self, full: &str) -> Result<InterfaceFile, LibraryError> {
        let (package, kind, name) =
            split_full_name(full).ok_or_else(|| self.unknown(full, None))?;
        let definition = self.get(full).ok_or_else(|| self.unknown(full, None))?;
        if let Some(reason) = definition.unreadable {
            return Err(LibraryError::Unreadable {
                origin: definition.origin.to_string(),
                reason: reason.to_string(),
            });
        }
        Ok(schema::parse(
            package,
            name,
            kind,
            definition.text,
            definition.origin,
        )?)
    }

    /// Describes a type with all types it refers to: a message, a service, an
    /// action, or any type derived from those, such as
    /// `example_interfaces/srv/AddTwoInts_Request`.
    ///
    /// # Errors
    /// A name is unknown, a text has a mistake, or messages contain themselves.
    pub fn describe(&self, name: &str) -> Result<TypeDescription, LibraryError> {
        derived::describe(self, name)
    }

    /// The RIHS01 hash of a type, see [`describe`](Self::describe).
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn type_hash(&self, name: &str) -> Result<TypeHash, LibraryError> {
        self.describe(name).map(|description| rihs01(&description))
    }

    /// All types that one definition gives rise to, the definition's own name
    /// first: 1 for a message, 4 for a service, 13 for an action.
    ///
    /// # Errors
    /// As [`file`](Self::file).
    pub fn derived_names(&self, name: &str) -> Result<Vec<String>, LibraryError> {
        let file = self.file(name)?;
        Ok(derived::names_of(&file))
    }

    /// The structure of a full type name, defined or derived. For services and
    /// actions themselves that is the structure that ROS 2 describes them with; no
    /// message of that form is ever sent.
    ///
    /// # Errors
    /// As [`describe`](Self::describe).
    pub fn structure(&self, name: &str) -> Result<StructSpec, LibraryError> {
        derived::structure(self, name)
    }

    /// The full name of the message with this `@dds_name`.
    pub fn with_dds_name(&self, dds_name: &str) -> Option<String> {
        let mut messages = self.names().filter(|name| name.contains("/msg/"));
        let said = |name: &&str| {
            let text = self.text(name).unwrap_or_default();
            text.contains("@dds_name")
                && self
                    .structure(name)
                    .is_ok_and(|spec| spec.dds_name.as_deref() == Some(dds_name))
        };
        messages.find(said).map(Into::into)
    }

    fn unknown(&self, name: &str, used_by: Option<(&str, u32)>) -> LibraryError {
        let (package, short) = match (name.split_once('/'), name.rsplit_once('/')) {
            (Some((package, _)), Some((_, short))) => (package, short),
            _ => ("", name),
        };
        let mut packages_nearby = Vec::new();
        let mut same_package = false;
        for known in self.names() {
            let below = known.strip_prefix(package);
            same_package |= below.is_some_and(|rest| rest.starts_with('/'));
            if known
                .rsplit_once('/')
                .is_some_and(|(_, last)| last == short)
            {
                packages_nearby.push(known.to_string());
            }
        }
        LibraryError::Unknown(Box::new(UnknownInterface {
            name: name.to_string(),
            used_by: used_by.map(|(origin, line)| format!("{origin}:{line}")),
            similar: packages_nearby,
            package_known: same_package,
        }))
    }
}

fn is_full_name(full: &str) -> bool {
    split_full_name(full).is_some()
}

/// Takes `std_msgs/msg/String` apart.
pub fn split_full_name(full: &str) -> Option<(&str, InterfaceKind, &str)> {
    let mut words = full.split('/');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some(package), Some(kind), Some(name), None)
            if !package.is_empty() && !name.is_empty() =>
        {
            Some((package, InterfaceKind::from_word(kind)?, name))
        }
        _ => None,
    }
}

/// Why a type could not be described.
#[derive(Clone, PartialEq, Eq)]
pub enum LibraryError {
    /// A definition is missing.
    Unknown(Box<UnknownInterface>),
    /// A definition has a mistake.
    Schema(SchemaError),
    /// A definition is listed, but its file could not be read.
    Unreadable {
        /// The file.
        origin: String,
        /// The operating system's error.
        reason: String,
    },
    /// Messages contain themselves; the names in order, the first one again last.
    Recursive(Vec<String>),
    /// Messages are nested deeper than decoders go; the name of the innermost.
    TooDeep(String),
    /// Two types of a package would have the same name in Rust.
    SameRustName {
        /// The two types.
        types: [String; 2],
        /// The name.
        rust: String,
    },
}

crate::debug_as_display!(LibraryError);

/// A missing definition, with suggestions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownInterface {
    /// The name looked for.
    pub name: String,
    /// `file:line` of the field that needs it, if one does.
    pub used_by: Option<String>,
    /// Known interfaces with the same last word.
    pub similar: Vec<String>,
    /// Whether other interfaces of its package are known.
    pub package_known: bool,
}

impl From<SchemaError> for LibraryError {
    fn from(error: SchemaError) -> Self {
        Self::Schema(error)
    }
}

impl fmt::Display for LibraryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(error) => error.fmt(f),
            Self::Unknown(unknown) => unknown.fmt(f),
            Self::Unreadable { origin, reason } => write!(
                f,
                "cannot read {origin}: {reason}; mend the file or take it out of the folder"
            ),
            Self::TooDeep(name) => write!(
                f,
                "{name} lies more than {} messages deep; flatten the type",
                derived::DEPTH_MAX
            ),
            Self::SameRustName {
                types: [one, other],
                rust,
            } => write!(
                f,
                "{one} and {other} are both named {rust} in Rust; rename one of them"
            ),
            Self::Recursive(names) => write!(
                f,
                "messages contain themselves: {}; break the circle, for example with an index instead of the message",
                names.join(" -> ")
            ),
        }
    }
}

impl fmt::Display for UnknownInterface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(place) = &self.used_by {
            write!(f, "{place}: ")?;
        }
        write!(f, "unknown interface \"{}\"; ", self.name)?;
        if !self.similar.is_empty() {
            write!(f, "did you mean {}?", self.similar.join(" or "))
        } else if !self.name.contains('/') {
            f.write_str("write it in full, as in std_msgs/msg/String")
        } else if self.package_known {
            f.write_str("its package is known but has no such interface: check the spelling")
        } else {
            f.write_str(
                "its package is not among the loaded ones: add its folder, or source its setup file so that AMENT_PREFIX_PATH names it",
            )
        }
    }
}

impl core::error::Error for LibraryError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn library(definitions: &[(&str, &'static str)]) -> InterfaceLibrary {
        let mut library = InterfaceLibrary::new();
        for (full, text) in definitions {
            let (package, kind, name) = split_full_name(full).unwrap();
            library.insert_text(package, kind, name, *text, full.to_string());
        }
        library
    }

    #[test]
    fn lists_are_read_in_place_and_the_last_definition_wins() {
        const ONE: &[(&str, &str)] = &[("a_msgs/msg/A", "int8 one"), ("a_msgs/msg/B", "int8 b")];
        const TWO: &[(&str, &str)] = &[("a_msgs/msg/A", "int8 two"), ("b_msgs/msg/C", "int8 c")];
        let mut library = InterfaceLibrary::new();
        assert!(library.is_empty());
        let kind = InterfaceKind::Message;
        library.insert_text("a_msgs", kind, "A", "int8 zero", "here");
        library.insert_definitions(ONE);
        assert_eq!(library.text("a_msgs/A"), Some("int8 one"));
        library.insert_definitions(TWO);
        assert_eq!(library.text("a_msgs/A"), Some("int8 two"));
        assert_eq!(library.origin("a_msgs/B"), Some("a_msgs/msg/B"));
        let all = ["a_msgs/msg/A", "a_msgs/msg/B", "b_msgs/msg/C"];
        assert_eq!(library.names().collect::<Vec<_>>(), all);
        assert_eq!(library.packages(), ["a_msgs", "b_msgs"]);
        library.insert_text("a_msgs", kind, "A", "int8 three", "here");
        assert_eq!(
            (library.text("a_msgs/A"), library.len()),
            (Some("int8 three"), 3)
        );
        let mut other = InterfaceLibrary::new();
        other.copy_definition(&library, "b_msgs/msg/C");
        other.merge(&library);
        assert_eq!(other.text("a_msgs/A"), Some("int8 three"));
        assert_eq!(other.text("b_msgs/C"), Some("int8 c"));
        // Unsorted entries and invalid names are checked one by one.
        let mut library = InterfaceLibrary::new();
        library.insert_definitions(&[("b_msgs/msg/B", "x"), ("a_msgs/msg/A", "y"), ("no", "z")]);
        assert_eq!(
            library.names().collect::<Vec<_>>(),
            ["a_msgs/msg/A", "b_msgs/msg/B"]
        );
    }

    #[test]
    fn names_are_found_with_and_without_their_kind() {
        let library = library(&[("p/msg/A", "int8 a"), ("p/srv/B", "---")]);
        assert_eq!(library.full_name("p/A").as_deref(), Some("p/msg/A"));
        assert_eq!(library.full_name("p/B").as_deref(), Some("p/srv/B"));
        assert_eq!(library.text("p/msg/A"), Some("int8 a"));
        assert_eq!(library.full_name("p/C"), None);
        assert_eq!(library.packages(), ["p"]);
    }

    #[test]
    fn a_message_is_found_by_the_name_that_it_has_in_dds() {
        let library = library(&[
            ("p/msg/A", "int8 a # not @dds_name Shape"),
            ("p/msg/B", "# @dds_name Shape\nint8 a"),
        ]);
        assert_eq!(library.with_dds_name("Shape").as_deref(), Some("p/msg/B"));
        assert_eq!(library.with_dds_name("A"), None);
    }

    #[test]
    fn a_missing_type_is_reported_where_it_is_used() {
        let library = library(&[
            ("p/msg/A", "int8 a\nHeader header"),
            ("std_msgs/msg/Header", "string frame_id"),
        ]);
        let error = library.describe("p/msg/A").unwrap_err().to_string();
        assert_eq!(
            error,
            "p/msg/A:2: unknown interface \"p/msg/Header\"; did you mean std_msgs/msg/Header?"
        );
        let error = library.describe("q/msg/A").unwrap_err().to_string();
        assert!(error.contains("did you mean p/msg/A"), "{error}");
        let error = library.describe("q/msg/Z").unwrap_err().to_string();
        assert!(error.contains("AMENT_PREFIX_PATH"), "{error}");
    }

    #[test]
    fn messages_that_contain_themselves_are_refused() {
        let library = library(&[("p/msg/A", "B b"), ("p/msg/B", "A[] a")]);
        let error = library.describe("p/msg/A").unwrap_err();
        assert!(matches!(&error, LibraryError::Recursive(names) if names.len() == 3));
        assert!(error.to_string().contains("p/msg/A -> p/msg/B -> p/msg/A"));
    }

    #[test]
    fn an_action_gives_rise_to_thirteen_types() {
        let library = library(&[
            ("p/action/Go", "int8 a\n---\n---\n"),
            ("unique_identifier_msgs/msg/UUID", "uint8[16] uuid"),
            ("builtin_interfaces/msg/Time", "int32 sec\nuint32 nanosec"),
            (
                "service_msgs/msg/ServiceEventInfo",
                "uint8 event_type\nbuiltin_interfaces/Time stamp\nchar[16] client_gid\nint64 sequence_number",
            ),
        ]);
        let names = library.derived_names("p/action/Go").unwrap();
        assert_eq!(names.len(), 13);
        for name in names {
            let described = library.describe(&name).unwrap();
            assert_eq!(described.type_description.type_name, name);
            assert!(
                described
                    .referenced
                    .is_sorted_by(|a, b| a.type_name < b.type_name)
            );
        }
    }
}
