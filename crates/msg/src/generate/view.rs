//! Generated view of a message type: its struct in the module `view`, and
//! `Viewable`.

use super::generator::{Generator, ModuleContext};
use super::layout::Layout;
use super::names::{escaped, type_name};
use super::structure::{element_type, rust_type};
use crate::describe::Extensibility;
use crate::schema::{BaseType, FieldSpec, Shape, StructSpec};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// The implementation of `Viewable`, and `fixed_layout!` where it holds.
pub(super) fn impl_text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
    spec: &StructSpec,
) -> String {
    let msg = &generator.options.msg_path;
    if is_in_place(generator, spec) {
        return in_place_text(generator, context, name, spec);
    }
    let (mut read, mut borrow) = (String::new(), String::new());
    for field in &spec.fields {
        let (name, place) = (
            escaped(&field.name),
            format!("self.{}", escaped(&field.name)),
        );
        let form = FieldForm::of(generator, field);
        read.push_str(&format!(
            "                {name}: {},\n",
            read_text(generator, context, form, field)
        ));
        let lent = borrow_text(msg, form, &place);
        borrow.push_str(&format!("                {name}: {lent},\n"));
    }
    let read = format!(
        "            let scope = input.begin_struct()?;
            let value = view::{name} {{\n{read}            }};
            input.end_struct(scope);
            Ok(value)"
    );
    let borrow = format!("            view::{name} {{\n{borrow}            }}");
    viewable_text(msg, name, &format!("view::{name}<'a>"), &read, &borrow)
}

fn viewable_text(msg: &str, name: &str, view: &str, read: &str, borrow: &str) -> String {
    let read_head = format!(
        "fn view<'a>(
            input: &mut {msg}::cdr::Decoder<'a>,
        ) -> ::core::result::Result<Self::View<'a>, {msg}::cdr::DecodeError>"
    );
    let lend_head = "fn as_view(&self) -> Self::View<'_>";
    format!(
        "    impl {msg}::Viewable for {name} {{
        type View<'a> = {view};

        {read_head} {{
{read}
        }}

        {lend_head} {{
{borrow}
        }}
    }}

"
    )
}

/// The struct itself, for the module `view` inside the messages' module; empty
/// for types that are viewed as a whole.
pub(super) fn struct_text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
    spec: &StructSpec,
) -> String {
    if is_in_place(generator, spec) {
        return String::new();
    }
    let mut fields = String::new();
    for field in &spec.fields {
        let ty = type_text(generator, context, FieldForm::of(generator, field), field);
        fields.push_str(&format!(
            "            /// `{}`\n            pub {}: {ty},\n",
            field.ty,
            escaped(&field.name)
        ));
    }
    let name = type_name(name);
    format!(
        "        /// View of `{}/{}/{name}`.
        #[derive(Clone, Debug)]
        pub struct {name}<'a> {{
{fields}        }}

",
        context.package, context.kind
    )
}

/// Types without parts to borrow separately, and those that may grow.
fn is_in_place(generator: &Generator<'_>, spec: &StructSpec) -> bool {
    spec.extensibility == Extensibility::Appendable || generator.holds_only(spec, |_| true)
}

fn in_place_text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
    spec: &StructSpec,
) -> String {
    let msg = &generator.options.msg_path;
    let (layout, read) = match Layout::of(generator, spec) {
        Some(_) => (
            layout_text(generator, context, name, spec),
            "input.fixed_view()".to_string(),
        ),
        None => (
            String::new(),
            format!(
                "{msg}::Decode::decode(input).map(|value| {msg}::view::MaybeBorrowed::Owned(::std::boxed::Box::new(value)))"
            ),
        ),
    };
    let view = format!("{msg}::view::MaybeBorrowed<'a, Self>");
    let borrow = format!("            {msg}::view::MaybeBorrowed::Borrowed(self)");
    layout + &viewable_text(msg, name, &view, &format!("            {read}"), &borrow)
}

/// How a field is seen.
#[derive(Clone, Copy, PartialEq)]
enum FieldForm {
    /// Read out: numbers, and messages of a few of them.
    Value,
    Text,
    WideText,
    /// The nested message's view.
    View,
    /// Lent as a slice where possible.
    Numbers,
    Fixed,
    /// Always a copy: each element must be checked.
    Bools,
    WideTexts,
    Messages,
    /// A vector of text views.
    Texts,
    Views,
}

impl FieldForm {
    fn of(generator: &Generator<'_>, field: &FieldSpec) -> Self {
        let base = &field.ty.base;
        let nested = generator.nested_structure(base);
        let is_single = field.ty.shape == Shape::Single;
        match (base, nested) {
            (BaseType::String(_), _) if is_single => Self::Text,
            (BaseType::WString(_), _) if is_single => Self::WideText,
            (_, Some(spec)) if is_single => {
                if is_plain(generator, &spec) {
                    Self::Value
                } else {
                    Self::View
                }
            }
            _ if is_single => Self::Value,
            (BaseType::String(_), _) => Self::Texts,
            (BaseType::WString(_), _) => Self::WideTexts,
            (BaseType::Bool, _) => Self::Bools,
            (_, Some(spec)) if Layout::of(generator, &spec).is_some() => Self::Fixed,
            (_, Some(spec)) if is_plain(generator, &spec) => Self::Messages,
            (_, Some(_)) => Self::Views,
            _ => Self::Numbers,
        }
    }
}

/// Whether it is `Copy` and always read out.
fn is_plain(generator: &Generator<'_>, spec: &StructSpec) -> bool {
    generator.holds_only(spec, |_| true)
}

/// The type of a view's field, as seen from the module `view`.
fn type_text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    form: FieldForm,
    field: &FieldSpec,
) -> String {
    let msg = &generator.options.msg_path;
    let mut element = element_type(generator, context, &field.ty.base);
    let is_message = matches!(field.ty.base, BaseType::Nested { .. });
    if is_message && (element.starts_with("super::") || !element.contains("::")) {
        element = format!("super::{element}");
    }
    let view = || format!("<{element} as {msg}::Viewable>::View<'a>");
    match form {
        FieldForm::Value => element,
        FieldForm::Text => format!("{msg}::view::Str<'a>"),
        FieldForm::WideText => format!("{msg}::view::Cow<'a, {element}>"),
        FieldForm::View => view(),
        FieldForm::Numbers
        | FieldForm::Fixed
        | FieldForm::Bools
        | FieldForm::WideTexts
        | FieldForm::Messages => {
            format!("{msg}::view::Cow<'a, [{element}]>")
        }
        FieldForm::Texts => format!("::std::vec::Vec<{msg}::view::Str<'a>>"),
        FieldForm::Views => format!("::std::vec::Vec<{}>", view()),
    }
}

/// How it is read out of the bytes.
fn read_text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    form: FieldForm,
    field: &FieldSpec,
) -> String {
    let msg = &generator.options.msg_path;
    let element = element_type(generator, context, &field.ty.base);
    let view = format!("<{element} as {msg}::Viewable>::view");
    let usual = || format!("{}?", super::codec::decode_call(msg, &field.ty));
    let owned = |call: String| format!("{msg}::view::Cow::Owned({call})");
    let text_bound = match field.ty.base {
        BaseType::String(bound) | BaseType::WString(bound) => bound_text(bound),
        _ => String::new(),
    };
    let (count, is_array) = match field.ty.shape {
        Shape::Array(count) => (count.to_string(), true),
        Shape::Bounded(bound) => (bound.to_string(), false),
        Shape::Unbounded | Shape::Single => (bound_text(None), false),
    };
    let kind = if is_array { "array" } else { "sequence" };
    let each = |read: &str, bytes_min: usize| {
        if is_array {
            format!("input.vec_with({count}, {read})?")
        } else {
            format!("input.sequence_with({bytes_min}, {count}, {read})?")
        }
    };
    match form {
        FieldForm::Value => usual(),
        FieldForm::Text => format!("input.str_view({text_bound})?"),
        FieldForm::WideText => owned(usual()),
        FieldForm::View => format!("{view}(input)?"),
        FieldForm::Numbers => format!("input.number_{kind}_view({count})?"),
        FieldForm::Fixed => format!("input.fixed_{kind}_view({count})?"),
        FieldForm::Bools if is_array => owned(format!("input.bool_vec({count})?")),
        FieldForm::WideTexts => owned(each(&format!("|input| input.wstring({text_bound})"), 4)),
        FieldForm::Messages => owned(each(&format!("{msg}::Decode::decode"), 1)),
        FieldForm::Bools => owned(usual()),
        FieldForm::Texts => each(&format!("|input| input.str_view({text_bound})"), 4),
        FieldForm::Views => each(&view, 1),
    }
}

/// The view of a field of an owned value.
fn borrow_text(msg: &str, form: FieldForm, place: &str) -> String {
    match form {
        FieldForm::Value => place.to_string(),
        FieldForm::Text => format!("{place}.as_str().into()"),
        FieldForm::WideText => format!("{msg}::view::Cow::Borrowed(&{place})"),
        FieldForm::View => format!("{msg}::Viewable::as_view(&{place})"),
        FieldForm::Numbers
        | FieldForm::Fixed
        | FieldForm::Bools
        | FieldForm::WideTexts
        | FieldForm::Messages => {
            format!("{msg}::view::Cow::Borrowed(&{place}[..])")
        }
        FieldForm::Texts => format!("{place}.iter().map(|text| text.as_str().into()).collect()"),
        FieldForm::Views => format!("{place}.iter().map({msg}::Viewable::as_view).collect()"),
    }
}

fn bound_text(bound: Option<u32>) -> String {
    bound.map_or("usize::MAX".to_string(), |bound| bound.to_string())
}

/// Repeats the types, so that the compiler compares them.
fn layout_text(
    generator: &Generator<'_>,
    context: &ModuleContext<'_>,
    name: &str,
    spec: &StructSpec,
) -> String {
    let msg = &generator.options.msg_path;
    let fields: Vec<String> = spec
        .fields
        .iter()
        .map(|field| {
            let ty = rust_type(generator, context, &field.ty);
            format!("{}: {ty}", escaped(&field.name))
        })
        .collect();
    format!(
        "    {msg}::fixed_layout!({name} {{ {} }});\n\n",
        fields.join(", ")
    )
}
