//! Generated struct: fields, constants, defaults.

use super::generator::{Generator, ModuleContext};
use super::layout::Layout;
use super::names::{escaped, type_name};
use crate::schema::{BaseType, ConstantSpec, FieldSpec, Literal, Shape, StructSpec, TypeSpec};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// `core` implements `Default` for arrays up to this length.
const DEFAULT_ARRAY_MAX: u32 = 32;

/// Struct, constants and `Default`.
pub(super) fn text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
    spec: &StructSpec,
) -> String {
    let derived_default = spec.fields.iter().all(has_derived_default);
    let mut out = String::new();
    push_docs(
        &mut out,
        "    ",
        &spec.comments,
        &format!("{}/{}/{name}", context.package, context.kind),
    );
    let mut traits = "Clone".to_string();
    if generator.holds_only(spec, |_| true) {
        traits.push_str(", Copy");
    }
    traits.push_str(", Debug");
    if derived_default {
        traits.push_str(", Default");
    }
    traits.push_str(", PartialEq");
    let no_floats = |base: &BaseType| !matches!(base, BaseType::Float32 | BaseType::Float64);
    if generator.holds_only(spec, no_floats) {
        traits.push_str(", Eq, Hash");
    }
    out.push_str(&format!("    #[derive({traits})]\n"));
    if context.kind == "msg" && Layout::of(generator, spec).is_some() {
        out.push_str("    #[repr(C)]\n");
    }
    let name = type_name(name);
    if spec.fields.is_empty() {
        out.push_str(&format!("    pub struct {name} {{}}\n\n"));
    } else {
        out.push_str(&format!("    pub struct {name} {{\n"));
        for field in &spec.fields {
            push_docs(
                &mut out,
                "        ",
                &field.comments,
                &format!("`{}`", field.ty),
            );
            if field.is_key {
                out.push_str("        ///\n        /// Part of the key.\n");
            }
            out.push_str(&format!(
                "        pub {}: {},\n",
                escaped(&field.name),
                rust_type(generator, context, &field.ty)
            ));
        }
        out.push_str("    }\n\n");
    }
    if !spec.constants.is_empty() {
        out.push_str(&format!("    impl {name} {{\n"));
        for constant in &spec.constants {
            push_constant(&mut out, constant);
        }
        out.push_str("    }\n\n");
    }
    if !derived_default {
        push_default(&mut out, generator, context, &name, spec);
    }
    out
}

/// The definition's comments as documentation, or `fallback` where it has none.
fn push_docs(out: &mut String, indent: &str, comments: &[String], fallback: &str) {
    if comments.iter().all(|line| line.trim().is_empty()) {
        out.push_str(&format!("{indent}/// {fallback}\n"));
        return;
    }
    for line in comments {
        // Indented lines and fences would become documentation tests.
        let line = line.trim().replace("```", "\"");
        out.push_str(format!("{indent}/// {line}").trim_end());
        out.push('\n');
    }
}

pub(super) fn rust_type(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    ty: &TypeSpec,
) -> String {
    let element = element_type(generator, context, &ty.base);
    match ty.shape {
        Shape::Single => element,
        Shape::Array(count) => format!("[{element}; {count}]"),
        Shape::Bounded(_) | Shape::Unbounded => format!("::std::vec::Vec<{element}>"),
    }
}

pub(super) fn element_type(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    base: &BaseType,
) -> String {
    match base {
        BaseType::String(_) => "::std::string::String".to_string(),
        BaseType::WString(_) => format!("{}::WString", generator.options.msg_path),
        BaseType::Nested { .. } => generator.nested_path(base, context),
        primitive => primitive_name(primitive).to_string(),
    }
}

/// The Rust name of a primitive; also the name of its encoder method.
pub(super) fn primitive_name(base: &BaseType) -> &'static str {
    match base {
        BaseType::Bool => "bool",
        BaseType::Int8 => "i8",
        BaseType::Int16 => "i16",
        BaseType::Uint16 => "u16",
        BaseType::Int32 => "i32",
        BaseType::Uint32 => "u32",
        BaseType::Int64 => "i64",
        BaseType::Uint64 => "u64",
        BaseType::Float32 => "f32",
        BaseType::Float64 => "f64",
        _ => "u8",
    }
}

fn push_constant(out: &mut String, constant: &ConstantSpec) {
    push_docs(
        out,
        "        ",
        &constant.comments,
        &format!("`{}`", constant.ty),
    );
    let ty = match constant.ty {
        BaseType::String(_) | BaseType::WString(_) => "&'static str",
        ref primitive => primitive_name(primitive),
    };
    let value = match &constant.value {
        Literal::Text(text) => format!("{text:?}"),
        value => plain_literal(&constant.ty, value),
    };
    out.push_str(&format!(
        "        pub const {}: {ty} = {value};\n",
        constant.name
    ));
}

/// Whether `#[derive(Default)]` gives this field its value.
fn has_derived_default(field: &FieldSpec) -> bool {
    let short_array = !matches!(field.ty.shape, Shape::Array(count) if count > DEFAULT_ARRAY_MAX);
    field.default.is_none() && short_array
}

fn push_default(
    out: &mut String,
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
    spec: &StructSpec,
) {
    out.push_str(&format!(
        "    impl ::core::default::Default for {name} {{\n        fn default() -> Self {{\n            Self {{\n"
    ));
    for field in &spec.fields {
        let value = match &field.default {
            Some(value) => default_expression(generator, &field.ty, value),
            None => zero_expression(generator, context, &field.ty),
        };
        out.push_str(&format!(
            "                {}: {value},\n",
            escaped(&field.name)
        ));
    }
    out.push_str("            }\n        }\n    }\n\n");
}

fn zero_expression(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    ty: &TypeSpec,
) -> String {
    match ty.shape {
        Shape::Array(count) if ty.base.is_primitive() => {
            let element = element_type(generator, context, &ty.base);
            match ty.base {
                BaseType::Bool => format!("[false; {count}]"),
                BaseType::Float32 | BaseType::Float64 => format!("[0.0_{element}; {count}]"),
                _ => format!("[0_{element}; {count}]"),
            }
        }
        Shape::Array(_) => {
            "::core::array::from_fn(|_| ::core::default::Default::default())".to_string()
        }
        _ => "::core::default::Default::default()".to_string(),
    }
}

fn default_expression(generator: &Generator<'_>, ty: &TypeSpec, value: &Literal) -> String {
    let element = |value: &Literal| match (value, &ty.base) {
        (Literal::Text(text), BaseType::WString(_)) => {
            format!("{}::WString::from({text:?})", generator.options.msg_path)
        }
        (Literal::Text(text), _) => format!("::std::string::String::from({text:?})"),
        (value, base) => plain_literal(base, value),
    };
    match value {
        Literal::List(items) => {
            let items: Vec<String> = items.iter().map(element).collect();
            let list = items.join(", ");
            match ty.shape {
                Shape::Array(_) => format!("[{list}]"),
                _ => format!("::std::vec![{list}]"),
            }
        }
        value => element(value),
    }
}

fn plain_literal(base: &BaseType, value: &Literal) -> String {
    let name = primitive_name(base);
    match value {
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Float(value) if value.is_nan() => format!("{name}::NAN"),
        Literal::Float(value) if value.is_infinite() => {
            if *value > 0.0 {
                format!("{name}::INFINITY")
            } else {
                format!("{name}::NEG_INFINITY")
            }
        }
        Literal::Float(value) if *base == BaseType::Float32 => format!("{:?}", *value as f32),
        Literal::Float(value) => format!("{value:?}"),
        // Text and lists are written by the callers.
        Literal::Text(text) => format!("{text:?}"),
        Literal::List(_) => String::new(),
    }
}
