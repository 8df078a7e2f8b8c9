//! Interface definitions: parsed and described, with every type that they use.

use std::path::Path;

use pteros::interfaces;
use pteros::msg::library::{InterfaceLibrary, LibraryError, split_full_name};
use pteros::msg::schema::InterfaceKind;

use crate::outcome::{CheckedFile, FileKind, Outcome, Reason};
use crate::repository::{Repository, text_of};

const OUTSIDE: Reason = Reason("it is in no msg, srv or action folder of a package");
const UNREADABLE: Reason = Reason("it is not UTF-8 text");
const PACKAGE: Reason = Reason("it uses a package that is not in the folders");
const TYPE: Reason = Reason("it uses a type that its package does not have");
const OTHER: Reason = Reason("another fault");

/// Reads every definition of every repository.
pub fn check(repositories: &[Repository], files: &mut Vec<CheckedFile>) {
    let mut all = interfaces::library().clone();
    for repository in repositories {
        add(repository, &mut all);
    }
    for (index, repository) in repositories.iter().enumerate() {
        // Several repositories may have a package of one name. Its own counts.
        let mut library = all.clone();
        add(repository, &mut library);
        for file in &repository.files {
            let Some(kind) = kind_of(file) else { continue };
            let (outcome, faults) = match definition(repository, file, kind) {
                _ if repository.is_ros1(file) => (Outcome::Ros1, Vec::new()),
                None => (Outcome::LeftOut(OUTSIDE), Vec::new()),
                Some(_) if text_of(file).is_none() => {
                    (Outcome::RefusedByRos2(UNREADABLE), Vec::new())
                }
                Some(definition) => read(&library, &definition),
            };
            files.push(CheckedFile {
                repository: index,
                kind: FileKind::Definition,
                path: repository.relative(file),
                outcome,
                faults,
            });
        }
    }
}

/// A definition's place in a library.
struct Definition {
    package: String,
    kind: InterfaceKind,
    name: String,
}

/// The kinds that a file may have; none for other files.
fn kind_of(file: &Path) -> Option<Option<InterfaceKind>> {
    match file.extension()?.to_str()? {
        "idl" => Some(None),
        word => Some(Some(InterfaceKind::from_word(word)?)),
    }
}

/// The definition in a file: its folders below the package name the kind.
fn definition(
    repository: &Repository,
    file: &Path,
    kind: Option<InterfaceKind>,
) -> Option<Definition> {
    let (folder, package) = repository.package_of(file)?;
    let within = file.strip_prefix(folder).ok()?;
    let mut folders = within.parent()?.iter().rev();
    let of_folder = folders.find_map(|name| InterfaceKind::from_word(name.to_str()?))?;
    Some(Definition {
        package: package.name.clone(),
        kind: kind.unwrap_or(of_folder),
        name: file.file_stem()?.to_str()?.to_owned(),
    })
}

/// Adds the definitions of a repository.
fn add(repository: &Repository, library: &mut InterfaceLibrary) {
    for file in repository
        .files
        .iter()
        .filter(|file| !repository.is_ros1(file))
    {
        let definition = kind_of(file).and_then(|kind| definition(repository, file, kind));
        let (Some(definition), Some(text)) = (definition, text_of(file)) else {
            continue;
        };
        let Definition {
            package,
            kind,
            name,
        } = definition;
        let origin = repository.relative(file).display().to_string();
        library.insert_text(&package, kind, &name, text, origin);
    }
}

fn read(library: &InterfaceLibrary, definition: &Definition) -> (Outcome, Vec<String>) {
    let Definition {
        package,
        kind,
        name,
    } = definition;
    let names = match kind {
        InterfaceKind::Message => Ok(vec![format!("{package}/{kind}/{name}")]),
        _ => library.derived_names(&format!("{package}/{kind}/{name}")),
    };
    let described = names.and_then(|names| {
        names
            .iter()
            .try_for_each(|name| library.describe(name).map(drop))
    });
    match described {
        Ok(()) => (Outcome::Accepted, Vec::new()),
        Err(error) => (class(&error), vec![error.to_string()]),
    }
}

fn class(error: &LibraryError) -> Outcome {
    match error {
        LibraryError::Unknown(unknown) => {
            let is_known = unknown.package_known || split_full_name(&unknown.name).is_none();
            if is_known {
                Outcome::RefusedByRos2(TYPE)
            } else {
                Outcome::NeedsMore(PACKAGE)
            }
        }
        LibraryError::Recursive(_) => Outcome::RefusedByRos2(Reason("messages contain themselves")),
        LibraryError::Schema(error) => schema_class(&error.message),
        _ => Outcome::Refused(OTHER),
    }
}

/// The class of a syntax error. rosidl has the same rules.
fn schema_class(message: &str) -> Outcome {
    const RULES: &[(&str, Reason)] = &[
        (
            " in ROS 2; use ",
            Reason("it uses a primitive type of ROS 1"),
        ),
        (
            "is not a field name",
            Reason("a field name is not of lower-case letters"),
        ),
        (
            "looks like a field",
            Reason("a constant name is not of capitals"),
        ),
        (
            "is not a constant name",
            Reason("a constant name is not of capitals"),
        ),
        (
            "is already defined in line",
            Reason("two fields have one name"),
        ),
        ("\"---\" is missing", Reason("a part is missing")),
        (
            " name; use CamelCase",
            Reason("its own name is not in CamelCase"),
        ),
    ];
    match RULES.iter().find(|(part, _)| message.contains(part)) {
        Some((_, reason)) => Outcome::RefusedByRos2(*reason),
        None => Outcome::Refused(OTHER),
    }
}
