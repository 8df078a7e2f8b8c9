//! Generated `Encode`, `Decode` and `check_bounds`: one plain call per field.

use super::generator::Generator;
use super::names::escaped;
use super::structure::primitive_name;
use crate::describe::Extensibility;
use crate::schema::{BaseType, FieldSpec, Shape, StructSpec, TypeSpec};
use alloc::format;
use alloc::string::{String, ToString};

/// `Encode` and `Decode`.
pub(super) fn text(generator: &Generator<'_>, name: &str, spec: &StructSpec) -> String {
    let msg = &generator.options.msg_path;
    let (open, close) = begin_text(spec.extensibility);
    let (mut encode, mut extensibility) = (String::new(), String::new());
    for field in &spec.fields {
        encode.push_str(&format!("            {};\n", encode_call(msg, field)));
    }
    if spec.fields.is_empty() {
        // The octet of an empty structure (rosidl_parser).
        encode.push_str("            out.u8(0);\n");
    }
    let decode = match spec.extensibility {
        Extensibility::Final => decode_final(msg, spec),
        Extensibility::Appendable => {
            extensibility = format!(
                "
        fn extensibility(&self) -> {msg}::Extensibility {{
            {msg}::Extensibility::Appendable
        }}
"
            );
            decode_appendable(msg, spec)
        }
    };
    format!(
        "    impl {msg}::Encode for {name} {{
        fn encode(&self, out: &mut {msg}::cdr::Encoder<'_>) {{
{open}{encode}{close}        }}
{extensibility}    }}

    impl {msg}::Decode for {name} {{
        fn decode(
            input: &mut {msg}::cdr::Decoder<'_>,
        ) -> ::core::result::Result<Self, {msg}::cdr::DecodeError> {{
{decode}            input.end_struct(scope);
            Ok(value)
        }}
    }}

"
    )
}

fn decode_final(msg: &str, spec: &StructSpec) -> String {
    let mut fields = String::new();
    for field in &spec.fields {
        fields.push_str(&format!(
            "                {}: {}?,\n",
            escaped(&field.name),
            decode_call(msg, &field.ty)
        ));
    }
    let value = if spec.fields.is_empty() {
        "            input.u8()?;\n            let value = Self {};\n".to_string()
    } else {
        format!("            let value = Self {{\n{fields}            }};\n")
    };
    format!("            let scope = input.begin_struct()?;\n{value}")
}

/// Members that the sender's type lacks keep their default.
fn decode_appendable(msg: &str, spec: &StructSpec) -> String {
    let mut text = "            let scope = input.begin_appendable()?;\n".to_string();
    if spec.fields.is_empty() {
        text.push_str("            let value = Self {};\n");
        return text;
    }
    text.push_str("            let mut value = Self::default();\n");
    for field in &spec.fields {
        let name = escaped(&field.name);
        text.push_str(&format!(
            "            if input.has_more(::core::mem::size_of_val(&value.{name}))? {{
                value.{name} = {}?;
            }}\n",
            decode_call(msg, &field.ty)
        ));
    }
    text
}

/// The encoder calls around the members' calls.
pub(super) fn begin_text(extensibility: Extensibility) -> (&'static str, &'static str) {
    match extensibility {
        Extensibility::Final => ("", ""),
        Extensibility::Appendable => (
            "            let scope = out.begin_appendable();\n",
            "            out.end_appendable(scope);\n",
        ),
    }
}

/// The decoder's method that opens such a structure.
pub(super) fn begin_name(extensibility: Extensibility) -> &'static str {
    match extensibility {
        Extensibility::Final => "begin_struct",
        Extensibility::Appendable => "begin_appendable",
    }
}

pub(super) fn encode_call(msg: &str, field: &FieldSpec) -> String {
    let place = format!("self.{}", escaped(&field.name));
    let base = &field.ty.base;
    let family = family(base);
    match field.ty.shape {
        Shape::Single => match base {
            BaseType::Nested { .. } => format!("{msg}::Encode::encode(&{place}, out)"),
            BaseType::String(_) => format!("out.string(&{place})"),
            BaseType::WString(_) => format!("out.wstring(&{place})"),
            primitive => format!("out.{}({place})", primitive_name(primitive)),
        },
        Shape::Array(_) => format!("out.{family}_array(&{place})"),
        Shape::Bounded(_) | Shape::Unbounded => format!("out.{family}_sequence(&{place})"),
    }
}

pub(super) fn decode_call(msg: &str, ty: &TypeSpec) -> String {
    let family = family(&ty.base);
    let string_bound = match ty.base {
        BaseType::String(bound) | BaseType::WString(bound) => Some(bound_text(bound)),
        _ => None,
    };
    let bound = match ty.shape {
        Shape::Single => {
            return match (&ty.base, string_bound) {
                (BaseType::Nested { .. }, _) => format!("{msg}::Decode::decode(input)"),
                (_, Some(bound)) => format!("input.{family}({bound})"),
                (primitive, None) => format!("input.{}()", primitive_name(primitive)),
            };
        }
        Shape::Array(_) => {
            return format!("input.{family}_array({})", string_bound.unwrap_or_default());
        }
        Shape::Bounded(bound) => bound_text(Some(bound)),
        Shape::Unbounded => bound_text(None),
    };
    match string_bound {
        Some(string_bound) => format!("input.{family}_sequence({bound}, {string_bound})"),
        None => format!("input.{family}_sequence({bound})"),
    }
}

/// How the encoder's and decoder's methods for collections begin.
fn family(base: &BaseType) -> &'static str {
    match base {
        BaseType::Bool => "bool",
        BaseType::String(_) => "string",
        BaseType::WString(_) => "wstring",
        BaseType::Nested { .. } => "message",
        _ => "primitive",
    }
}

fn bound_text(bound: Option<u32>) -> String {
    match bound {
        Some(bound) => bound.to_string(),
        None => "usize::MAX".to_string(),
    }
}

impl Generator<'_> {
    /// Whether values of a type can break a bound, at any depth.
    pub(super) fn has_bounds(&self, spec: &StructSpec) -> bool {
        spec.fields
            .iter()
            .any(|field| field_has_bounds(self, &field.ty))
    }

    pub(super) fn nested_has_bounds(&self, base: &BaseType) -> bool {
        self.nested_structure(base)
            .is_some_and(|spec| self.has_bounds(&spec))
    }
}

/// Whether a field's value can break a bound, at any depth.
fn field_has_bounds(generator: &Generator<'_>, ty: &TypeSpec) -> bool {
    matches!(ty.shape, Shape::Bounded(_))
        || string_bound(&ty.base).is_some()
        || generator.nested_has_bounds(&ty.base)
}

fn string_bound(base: &BaseType) -> Option<u32> {
    match base {
        BaseType::String(bound) | BaseType::WString(bound) => *bound,
        _ => None,
    }
}

/// The method `check_bounds` of `Message`.
pub(super) fn check_bounds_text(generator: &Generator<'_>, spec: &StructSpec) -> String {
    let msg = &generator.options.msg_path;
    let mut checks = String::new();
    for field in &spec.fields {
        push_checks(&mut checks, generator, field);
    }
    format!(
        "
        fn check_bounds(&self) -> ::core::result::Result<(), {msg}::BoundError> {{
{checks}            Ok(())
        }}
"
    )
}

fn push_checks(out: &mut String, generator: &Generator<'_>, field: &FieldSpec) {
    let msg = &generator.options.msg_path;
    let (name, place) = (&field.name, format!("self.{}", escaped(&field.name)));
    if let Shape::Bounded(bound) = field.ty.shape {
        out.push_str(&format!(
            "            {msg}::BoundError::check(\"{name}\", {place}.len(), {bound})?;\n"
        ));
    }
    let check = match (&field.ty.base, string_bound(&field.ty.base)) {
        (BaseType::WString(_), Some(bound)) => Check::Length("0.len()", bound),
        (_, Some(bound)) => Check::Length("len()", bound),
        (base, None) if generator.nested_has_bounds(base) => Check::Nested,
        _ => return,
    };
    out.push_str(&match (field.ty.shape, check) {
        (Shape::Single, Check::Length(len, bound)) => {
            format!("            {msg}::BoundError::check(\"{name}\", {place}.{len}, {bound})?;\n")
        }
        (Shape::Single, Check::Nested) => format!(
            "            {msg}::Message::check_bounds(&{place})
                .map_err(|error| error.within(\"{name}\"))?;\n"
        ),
        (_, Check::Length(len, bound)) => format!(
            "            for (index, value) in {place}.iter().enumerate() {{
                {msg}::BoundError::check(\"\", value.{len}, {bound}).map_err(|error| {msg}::BoundError {{
                    field: ::std::format!(\"{name}[{{index}}]\"),
                    ..error
                }})?;
            }}\n"
        ),
        (_, Check::Nested) => format!(
            "            for (index, value) in {place}.iter().enumerate() {{
                {msg}::Message::check_bounds(value)
                    .map_err(|error| error.within(&::std::format!(\"{name}[{{index}}]\")))?;
            }}\n"
        ),
    });
}

/// Bound checks of an element.
enum Check {
    /// A string's length: how to get it, and the bound.
    Length(&'static str, u32),
    /// Bounds inside a message.
    Nested,
}
