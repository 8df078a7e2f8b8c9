//! Generated modules and trait implementations around the structs, and the
//! catalogue.

use super::generator::{Generator, ModuleContext, TextSource};
use super::names::{escaped, type_name};
use super::{action, codec, key, structure, view};
use crate::describe::{Extensibility, TypeDescription};
use crate::hash::{TypeHash, rihs01};
use crate::library::{LibraryError, split_full_name};
use crate::message::dds_type_name;
use crate::schema::InterfaceKind;
use crate::typeobject::{TypeObjects, is_announced};
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Lints that generated names and literals would trip.
const ALLOWED: &str = "#[allow(clippy::all, rustdoc::all)]";

pub(super) fn package_text(
    generator: &Generator<'_>,
    package: &str,
) -> Result<String, LibraryError> {
    let mut out = String::new();
    for kind in InterfaceKind::ALL {
        let names = definitions_of(generator, package, kind);
        if names.is_empty() {
            continue;
        }
        let what = match kind {
            InterfaceKind::Message => "Messages",
            InterfaceKind::Service => "Services",
            InterfaceKind::Action => "Actions",
        };
        out.push_str(&format!(
            "/// {what} of `{package}`.\n{ALLOWED}\npub mod {kind} {{\n"
        ));
        let context = ModuleContext {
            package,
            kind: kind.word(),
        };
        let mut views = String::new();
        check_rust_names(generator, &context, &names)?;
        for name in names {
            push_definition(&mut out, generator, &context, &name)?;
            if kind == InterfaceKind::Message {
                let full = format!("{package}/{kind}/{name}");
                let spec = generator.library.structure(&full)?;
                out.push_str(&view::impl_text(
                    generator,
                    &context,
                    &type_name(&name),
                    &spec,
                ));
                views.push_str(&view::struct_text(generator, &context, &name, &spec));
            }
        }
        if !views.is_empty() {
            out.push_str(&format!(
                "    /// Views of the messages of `{package}`.\n    pub mod view {{\n{}    }}\n",
                views.trim_end().to_string() + "\n"
            ));
        }
        out.push_str("}\n\n");
    }
    Ok(with_inline(out.trim_end()))
}

/// The text with `#[inline]` on every function. The crate that uses a type then
/// compiles the functions that it calls. A package of many types costs little to
/// build, and calls between crates can be inlined.
fn with_inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + text.len() / 16);
    for line in text.lines() {
        let code = line.trim_start();
        if code.starts_with("fn ") {
            out.push_str(line.get(..line.len() - code.len()).unwrap_or_default());
            out.push_str("#[inline]\n");
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

fn definitions_of(generator: &Generator<'_>, package: &str, kind: InterfaceKind) -> Vec<String> {
    let of_this = |full: &str| match split_full_name(full) {
        Some((of_package, of_kind, name)) if of_package == package && of_kind == kind => {
            Some(name.to_string())
        }
        _ => None,
    };
    generator.library.names().filter_map(of_this).collect()
}

/// Derived names lose their underscores, so that `Add_Request` of the service `Add` and
/// a service `AddRequest` have one name.
fn check_rust_names(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    names: &[String],
) -> Result<(), LibraryError> {
    let mut known: BTreeMap<String, String> = BTreeMap::new();
    for name in names {
        let definition = format!("{}/{}/{name}", context.package, context.kind);
        for full in generator.library.derived_names(&definition)? {
            let rust = type_name(full.rsplit('/').next().unwrap_or_default());
            if let Some(other) = known.insert(rust.clone(), full.clone()) {
                let types = [other, full];
                return Err(LibraryError::SameRustName { types, rust });
            }
        }
    }
    Ok(())
}

/// Everything that one definition gives rise to.
fn push_definition(
    out: &mut String,
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
) -> Result<(), LibraryError> {
    let definition = format!("{}/{}/{name}", context.package, context.kind);
    for full in generator.library.derived_names(&definition)? {
        let short = full.rsplit('/').next().unwrap_or_default();
        let description = generator.library.describe(&full)?;
        let hash = rihs01(&description);
        match GeneratedTypeKind::of(&full, &definition) {
            GeneratedTypeKind::Service => push_service(out, generator, &full, short, hash),
            GeneratedTypeKind::Action => action::push_action(out, generator, &full, short, hash),
            GeneratedTypeKind::Message => push_message(out, generator, context, &description)?,
        }
    }
    Ok(())
}

fn push_message(
    out: &mut String,
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    description: &TypeDescription,
) -> Result<(), LibraryError> {
    let full = description.type_description.type_name.as_str();
    let short = full.rsplit('/').next().unwrap_or_default();
    let spec = generator.library.structure(full)?;
    let msg = &generator.options.msg_path;
    let name = type_name(short);
    out.push_str(&structure::text(generator, context, short, &spec));
    out.push_str(&codec::text(generator, &name, &spec));
    let mut constants = String::new();
    if spec.extensibility == Extensibility::Appendable {
        constants.push_str(&format!(
            "        const EXTENSIBILITY: {msg}::Extensibility = {msg}::Extensibility::Appendable;\n"
        ));
    }
    constants.push_str(&key::constants_text(&spec, description));
    if is_announced(description)
        && let Some(objects) = TypeObjects::new(description)
    {
        constants.push_str(&format!(
            "        const TYPE_INFORMATION: &'static [u8] = b\"{}\";\n",
            objects.information().escape_ascii()
        ));
    }
    let dds_name = spec.dds_name.clone();
    let dds_name = dds_name.unwrap_or_else(|| dds_type_name(full));
    out.push_str(&format!(
        "    impl {msg}::Message for {name} {{
        const TYPE_NAME: &'static str = \"{full}\";
        const TYPE_HASH: {msg}::hash::TypeHash = {};
{constants}
        fn dds_type_name() -> ::std::string::String {{
            ::std::string::String::from(\"{dds_name}\")
        }}

        fn type_description() -> &'static {msg}::describe::TypeDescription {{
            static DESCRIPTION: ::std::sync::OnceLock<{msg}::describe::TypeDescription> =
                ::std::sync::OnceLock::new();
            DESCRIPTION.get_or_init(|| super::super::described(\"{full}\"))
        }}
",
        generator.hash_expression(rihs01(description))
    ));
    // The standard packages' own library is always searched.
    if !generator.options.base_libraries.is_empty() {
        out.push_str(&format!(
            "
        fn definitions() -> ::std::option::Option<&'static {msg}::library::InterfaceLibrary> {{
            ::std::option::Option::Some(super::super::library())
        }}
"
        ));
    }
    if generator.has_bounds(&spec) {
        out.push_str(&codec::check_bounds_text(generator, &spec));
    }
    out.push_str(&key::methods_text(generator, &spec));
    out.push_str("    }\n\n");
    Ok(())
}

fn push_service(
    out: &mut String,
    generator: &Generator<'_>,
    full: &str,
    name: &str,
    hash: TypeHash,
) {
    let msg = &generator.options.msg_path;
    let rust = type_name(name);
    let stem = name.replace('_', "");
    out.push_str(&format!(
        "    /// The service {full}.
    #[derive(Clone, Copy, Debug)]
    pub struct {rust};

    impl {msg}::Service for {rust} {{
        type Request = {stem}Request;
        type Response = {stem}Response;
        type Event = {stem}Event;
        const TYPE_NAME: &'static str = \"{full}\";
        const TYPE_HASH: {msg}::hash::TypeHash = {};
    }}

",
        generator.hash_expression(hash)
    ));
}

#[derive(Clone, Copy, PartialEq)]
enum GeneratedTypeKind {
    Message,
    Service,
    Action,
}

impl GeneratedTypeKind {
    /// `full` is one of the names that the definition `definition` gives rise to.
    fn of(full: &str, definition: &str) -> Self {
        let is_definition = full == definition;
        let is_service = full.ends_with("_SendGoal") || full.ends_with("_GetResult");
        match split_full_name(definition) {
            Some((_, InterfaceKind::Service, _)) if is_definition => Self::Service,
            Some((_, InterfaceKind::Action, _)) if is_definition => Self::Action,
            Some((_, InterfaceKind::Action, _)) if is_service => Self::Service,
            _ => Self::Message,
        }
    }

    fn trait_name(self) -> &'static str {
        match self {
            Self::Message => "Message",
            Self::Service => "Service",
            Self::Action => "Action",
        }
    }
}

pub(super) fn type_table_text(
    generator: &Generator<'_>,
    packages: &[&str],
) -> Result<String, LibraryError> {
    let msg = &generator.options.msg_path;
    let mut out = format!(
        "/// Name and hash of every type here, messages, services and actions alike.\n#[rustfmt::skip]\npub const TYPES: &[(&str, {msg}::hash::TypeHash)] = &[\n"
    );
    for definition in generator.library.names() {
        let Some((package, kind, _)) = split_full_name(definition) else {
            continue;
        };
        if !packages.contains(&package) {
            continue;
        }
        for full in generator.library.derived_names(definition)? {
            let name = type_name(full.rsplit('/').next().unwrap_or_default());
            let role = GeneratedTypeKind::of(&full, definition).trait_name();
            let ty = format!("<{}::{kind}::{name} as {msg}::{role}>", escaped(package));
            out.push_str(&format!("    ({ty}::TYPE_NAME, {ty}::TYPE_HASH),\n"));
        }
    }
    out.push_str("];\n");
    Ok(out)
}

pub(super) fn catalogue_text(
    generator: &Generator<'_>,
    packages: &[&str],
    source: TextSource<'_>,
) -> String {
    let msg = &generator.options.msg_path;
    let mut out = String::from(
        "/// Full name and text of every definition here.\n#[rustfmt::skip]\npub const DEFINITIONS: &[(&str, &str)] = &[\n",
    );
    for full in generator.library.names() {
        let Some((package, kind, name)) = split_full_name(full) else {
            continue;
        };
        if !packages.contains(&package) {
            continue;
        }
        let text = match source {
            TextSource::Literal => {
                format!("{:?}", generator.library.text(full).unwrap_or_default())
            }
            TextSource::Include(folder) => {
                format!("include_str!(\"{folder}/{package}/{kind}/{name}.{kind}\")")
            }
        };
        out.push_str(&format!("    (\"{full}\", {text}),\n"));
    }
    let bases: String = generator
        .options
        .base_libraries
        .iter()
        .map(|base| format!("        library.merge({base});\n"))
        .collect();
    out.push_str(&format!(
        "];

/// All definitions here and those that they build on; put together on first use.
pub fn library() -> &'static {msg}::library::InterfaceLibrary {{
    static LIBRARY: ::std::sync::OnceLock<{msg}::library::InterfaceLibrary> =
        ::std::sync::OnceLock::new();
    LIBRARY.get_or_init(|| {{
        let mut library = {msg}::library::InterfaceLibrary::new();
{bases}        library.insert_definitions(DEFINITIONS);
        library
    }})
}}

/// Generated types are described from the text that they were generated from.
#[allow(dead_code)]
pub(crate) fn described(name: &str) -> {msg}::describe::TypeDescription {{
    match library().describe(name) {{
        Ok(description) => description,
        Err(error) => unreachable!(\"{{name}} was described when it was generated: {{error}}\"),
    }}
}}
"
    ));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::GenerateOptions;
    use crate::library::InterfaceLibrary;

    #[test]
    fn two_types_of_one_name_in_rust_are_refused_by_both_names() {
        let mut library = InterfaceLibrary::new();
        for name in ["Add", "AddRequest"] {
            let text = "int8 a\n---\nint8 b\n";
            library.insert_text("own", InterfaceKind::Service, name, text, "own");
        }
        let options = GenerateOptions::default();
        let error = Generator::new(&library, &options).package("own");
        let text = error.unwrap_err().to_string();
        assert_eq!(
            text,
            "own/srv/Add_Request and own/srv/AddRequest are both named AddRequest in Rust; \
             rename one of them"
        );
    }
}
