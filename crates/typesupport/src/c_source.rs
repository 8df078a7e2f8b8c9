//! C sources of interface packages: plain structs as rosidl_generator_c names them, and
//! the [tables](crate::CMessageTable) that describe them. Text to text: no files here.
//!
//! A package becomes one header per interface, `std_msgs/msg/string.h`, and one source
//! file with its tables, `std_msgs/std_msgs.c`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use pteros_msg::cdr::Representation;
use pteros_msg::describe::{Field, FieldType, TypeDescription, type_id};
use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::library::{InterfaceLibrary, LibraryError, split_full_name};
use pteros_msg::schema::{BaseType, ConstantSpec, InterfaceKind, Literal};

/// A file of the generated sources.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CSourceFile {
    /// Path below the output folder, `std_msgs/msg/string.h`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// Generates the C sources of packages, and of the packages that they refer to.
///
/// # Errors
/// A definition has a mistake or refers to an unknown type.
pub fn c_sources(
    library: &InterfaceLibrary,
    packages: &[&str],
) -> Result<Vec<CSourceFile>, LibraryError> {
    let names: Vec<&str> = library.names().collect();
    let of_package = |package: &str| -> Vec<&str> {
        let is_of = |name: &&&str| name.split('/').next() == Some(package);
        names.iter().filter(is_of).copied().collect()
    };
    let mut open: Vec<String> = packages.iter().map(|name| (*name).into()).collect();
    let mut known = BTreeSet::new();
    let mut files = Vec::new();
    while let Some(package) = open.pop() {
        if !known.insert(package.clone()) {
            continue;
        }
        let mut source = PackageSource::new(&package);
        for name in of_package(&package) {
            let interface = Interface::of(library, name)?;
            let used = interface.used_packages();
            open.extend(used.into_iter().filter(|other| !known.contains(other)));
            files.push(interface.header());
            source.add(&interface);
        }
        files.push(source.file());
    }
    files.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(files)
}

/// One definition with the messages that it gives rise to.
struct Interface {
    package: String,
    kind: InterfaceKind,
    name: String,
    messages: Vec<Message>,
    /// RIHS01 of its services, by C name.
    services: Vec<ServiceTable>,
}

/// One struct.
struct Message {
    description: TypeDescription,
    constants: Vec<ConstantSpec>,
}

/// A service, by the C name of its type.
struct ServiceTable {
    full: String,
    hash: Option<[u8; 32]>,
}

impl Interface {
    fn of(library: &InterfaceLibrary, full: &str) -> Result<Self, LibraryError> {
        let (package, kind, name) =
            split_full_name(full).unwrap_or((full, InterfaceKind::Message, ""));
        let suffixes: &[&str] = match kind {
            InterfaceKind::Message => &[""],
            InterfaceKind::Service => &["_Request", "_Response"],
            InterfaceKind::Action => &[
                "_Goal",
                "_Result",
                "_Feedback",
                "_SendGoal_Request",
                "_SendGoal_Response",
                "_GetResult_Request",
                "_GetResult_Response",
                "_FeedbackMessage",
            ],
        };
        let services: &[&str] = match kind {
            InterfaceKind::Message => &[],
            InterfaceKind::Service => &[""],
            InterfaceKind::Action => &["_SendGoal", "_GetResult"],
        };
        let message = |suffix: &&str| {
            let full = format!("{full}{suffix}");
            Ok(Message {
                description: library.describe(&full)?,
                constants: library.structure(&full)?.constants,
            })
        };
        let service = |suffix: &&str| {
            let full = format!("{full}{suffix}");
            ServiceTable {
                // Without service_msgs in the library there is none.
                hash: library.type_hash(&full).ok().map(|hash| *hash.value()),
                full,
            }
        };
        Ok(Self {
            messages: suffixes
                .iter()
                .map(message)
                .collect::<Result<_, LibraryError>>()?,
            services: services.iter().map(service).collect(),
            package: package.into(),
            kind,
            name: name.into(),
        })
    }

    fn full(&self) -> String {
        format!("{}/{}/{}", self.package, self.kind, self.name)
    }

    /// Nested types that other headers declare.
    fn nested(&self) -> BTreeSet<&str> {
        let own = format!("{}_", self.full());
        let fields = self.messages.iter().flat_map(|message| message.fields());
        fields
            .map(|field| field.field_type.nested_type_name.as_str())
            .filter(|name| !name.is_empty() && !name.starts_with(&own))
            .collect()
    }

    fn used_packages(&self) -> BTreeSet<String> {
        let names = self.nested().into_iter();
        names
            .filter_map(|name| name.split('/').next())
            .map(String::from)
            .collect()
    }

    fn header(&self) -> CSourceFile {
        let path = header_path(&self.full());
        let guard = format!("{}_", path.to_uppercase().replace(['/', '.'], "__"));
        let mut text = format!(
            "/* Generated by `pteros interface generate --c` from {}. */\n#ifndef {guard}\n#define {guard}\n\n#include <pteros/types.h>\n",
            self.full()
        );
        if self.messages.iter().any(Message::has_infinite_constant) {
            text.push_str("#include <math.h>\n");
        }
        for nested in self.nested() {
            let _ = writeln!(text, "#include \"{}\"", header_path(nested));
        }
        for message in &self.messages {
            message.declare(&mut text);
        }
        for service in &self.services {
            let name = c_name(&service.full);
            let _ = write!(
                text,
                "\n/* The service {}. */\nPTEROS_EXTERN const pteros_service_type_t {name}__type;\n",
                service.full
            );
        }
        if self.kind == InterfaceKind::Action {
            let _ = write!(
                text,
                "\n/* The action {}. */\nPTEROS_EXTERN const pteros_action_type_t {}__type;\n",
                self.full(),
                c_name(&self.full())
            );
        }
        let _ = write!(text, "\n#endif\n");
        CSourceFile { path, text }
    }
}

impl Message {
    fn full(&self) -> &str {
        &self.description.type_description.type_name
    }

    fn fields(&self) -> &[Field] {
        &self.description.type_description.fields
    }

    /// Whether a constant is infinite or no number, which `math.h` names.
    fn has_infinite_constant(&self) -> bool {
        let values = self.constants.iter().map(|constant| &constant.value);
        values
            .into_iter()
            .any(|value| matches!(value, Literal::Float(value) if !value.is_finite()))
    }

    fn declare(&self, text: &mut String) {
        let name = c_name(self.full());
        text.push('\n');
        for constant in &self.constants {
            declare_constant(&name, constant, text);
        }
        let _ = write!(text, "/* {}. */\ntypedef struct {name} {{\n", self.full());
        for field in self.fields() {
            let _ = writeln!(text, "  {};", declaration(field));
        }
        let _ = write!(
            text,
            "}} {name};\n\ntypedef struct {name}__Sequence {{\n  {name} *data;\n  size_t size;\n  size_t capacity;\n}} {name}__Sequence;\n\nPTEROS_MESSAGE({name})\n"
        );
    }

    /// CDR of the default message, if a field has a default value.
    fn defaults(&self) -> Option<Vec<u8>> {
        let all = std::iter::once(&self.description.type_description);
        let mut fields = all
            .chain(&self.description.referenced)
            .flat_map(|one| &one.fields);
        if fields.all(|field| field.default_value.is_empty()) {
            return None;
        }
        let ty = DynamicType::new(&self.description).ok()?;
        Some(DynamicMessage::new(&ty).to_payload(Representation::Xcdr1))
    }

    fn define(&self, text: &mut String) {
        let name = c_name(self.full());
        let _ = writeln!(
            text,
            "\nstatic const pteros_member_t {name}__members[] = {{"
        );
        for field in self.fields() {
            let of = &field.field_type;
            let (element, collection) = element_and_collection(of);
            let nested = match of.nested_type_name.as_str() {
                "" => "NULL".into(),
                nested => format!("&{}__type", c_name(nested)),
            };
            let _ = writeln!(
                text,
                "  {{\"{}\", {nested}, (uint32_t)offsetof({name}, {}), {}, {}, {}, {collection}, {{0, 0}}}},",
                field.name,
                c_field(&field.name),
                of.capacity,
                of.string_capacity,
                kind(element),
            );
        }
        text.push_str("};\n");
        let defaults = self.defaults();
        if let Some(bytes) = &defaults {
            let _ = write!(text, "static const uint8_t {name}__defaults[] = {{");
            for (at, byte) in bytes.iter().enumerate() {
                let space = if at % 20 == 0 { "\n  " } else { " " };
                let _ = write!(text, "{space}{byte},");
            }
            text.push_str("\n};\n");
        }
        let defaults = match defaults {
            Some(_) => format!("{name}__defaults, sizeof({name}__defaults)"),
            None => "NULL, 0".into(),
        };
        let _ = write!(
            text,
            "const pteros_message_type_t {name}__type = {{\n  \"{}\", {name}__members, {}, (uint32_t)sizeof({name}), {defaults}}};\n",
            self.full(),
            self.fields().len(),
        );
    }
}

/// The source file with the tables of a package.
struct PackageSource {
    package: String,
    includes: String,
    tables: String,
}

impl PackageSource {
    fn new(package: &str) -> Self {
        Self {
            package: package.into(),
            includes: String::new(),
            tables: String::new(),
        }
    }

    fn add(&mut self, interface: &Interface) {
        let full = interface.full();
        let _ = writeln!(self.includes, "#include \"{}\"", header_path(&full));
        let text = &mut self.tables;
        for message in &interface.messages {
            message.define(text);
        }
        for service in &interface.services {
            let name = c_name(&service.full);
            let hash = service.hash.unwrap_or_default();
            let hash: Vec<String> = hash.iter().map(u8::to_string).collect();
            let _ = write!(
                text,
                "\nconst pteros_service_type_t {name}__type = {{\n  \"{}\", &{name}_Request__type, &{name}_Response__type,\n  {{{}}}}};\n",
                service.full,
                hash.join(", "),
            );
        }
        if interface.kind == InterfaceKind::Action {
            let name = c_name(&full);
            let _ = write!(
                text,
                "\nconst pteros_action_type_t {name}__type = {{\n  \"{full}\", &{name}_SendGoal__type, &{name}_GetResult__type,\n  &{name}_FeedbackMessage__type, &{name}_Goal__type, &{name}_Result__type,\n  &{name}_Feedback__type}};\n"
            );
        }
    }

    fn file(self) -> CSourceFile {
        let Self {
            package,
            includes,
            tables,
        } = self;
        CSourceFile {
            path: format!("{package}/{package}.c"),
            text: format!(
                "/* Generated by `pteros interface generate --c`: the types of {package}. */\n#include <stddef.h>\n{includes}{tables}"
            ),
        }
    }
}

/// `std_msgs__msg__String`.
fn c_name(full: &str) -> String {
    full.replace('/', "__")
}

/// `std_msgs/msg/string.h`; that of the definition for a derived type.
fn header_path(full: &str) -> String {
    let (folder, name) = full.rsplit_once('/').unwrap_or(("", full));
    let name = name.split('_').next().unwrap_or(name);
    format!("{folder}/{}.h", snake_case(name))
}

/// As rosidl names files: `UInt8MultiArray` becomes `u_int8_multi_array`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut snake = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + 1);
        let begins_word = letter.is_ascii_uppercase()
            && before.is_some_and(|before| {
                !before.is_ascii_uppercase() || after.is_some_and(char::is_ascii_lowercase)
            });
        if begins_word {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

/// Words that C or C++ does not allow as names of fields, and ROS 2 does: keywords, and
/// macros that compilers define.
const KEYWORDS: &str = "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t \
    char32_t char8_t class co_await co_return co_yield compl concept const const_cast \
    consteval constexpr constinit continue decltype default delete do double dynamic_cast \
    else enum explicit export extern false float for friend goto if inline int linux long \
    mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected \
    public register reinterpret_cast requires restrict return short signed sizeof static \
    static_assert static_cast struct switch template this thread_local throw true try \
    typedef typeid typename typeof union unix unsigned using virtual void volatile wchar_t \
    while xor xor_eq";

/// The name of a field; one that is a keyword gets a `_` behind.
fn c_field(name: &str) -> String {
    if KEYWORDS.split(' ').any(|keyword| keyword == name) {
        format!("{name}_")
    } else {
        name.into()
    }
}

/// Element type, and 0, 1 or 2 for a single value, an array or a sequence.
fn element_and_collection(of: &FieldType) -> (u8, u8) {
    match of.type_id {
        id @ type_id::UNBOUNDED_SEQUENCE.. => (id - type_id::UNBOUNDED_SEQUENCE, 2),
        id @ type_id::BOUNDED_SEQUENCE.. => (id - type_id::BOUNDED_SEQUENCE, 2),
        id @ type_id::ARRAY.. => (id - type_id::ARRAY, 1),
        id => (id, 0),
    }
}

/// The declaration of a member, without semicolon.
fn declaration(field: &Field) -> String {
    let of = &field.field_type;
    let (element, collection) = element_and_collection(of);
    let name = c_field(&field.name);
    let words = words_of(element);
    let single = match words {
        Some(words) => words.c.to_string(),
        None => c_name(&of.nested_type_name),
    };
    match collection {
        0 => format!("{single} {name}"),
        1 => format!("{single} {name}[{}]", of.capacity),
        _ => match words {
            Some(words) => format!("rosidl_runtime_c__{}__Sequence {name}", words.sequence),
            None => format!("{single}__Sequence {name}"),
        },
    }
}

/// Names of an element type.
#[derive(Clone, Copy)]
struct ElementWords {
    /// Type of a single value.
    c: &'static str,
    /// The middle of rosidl_runtime_c's sequence type.
    sequence: &'static str,
    /// `PTEROS_KIND_…`.
    kind: &'static str,
}

const MESSAGE_KIND: &str = "PTEROS_KIND_MESSAGE";

fn kind(element: u8) -> &'static str {
    words_of(element).map_or(MESSAGE_KIND, |words| words.kind)
}

/// `None` for a message.
fn words_of(element: u8) -> Option<ElementWords> {
    let (c, sequence, kind) = match element {
        type_id::BOOLEAN => ("bool", "boolean", "PTEROS_KIND_BOOLEAN"),
        type_id::BYTE => ("uint8_t", "octet", "PTEROS_KIND_OCTET"),
        type_id::INT8 => ("int8_t", "int8", "PTEROS_KIND_INT8"),
        type_id::UINT8 => ("uint8_t", "uint8", "PTEROS_KIND_UINT8"),
        type_id::INT16 => ("int16_t", "int16", "PTEROS_KIND_INT16"),
        type_id::UINT16 => ("uint16_t", "uint16", "PTEROS_KIND_UINT16"),
        type_id::INT32 => ("int32_t", "int32", "PTEROS_KIND_INT32"),
        type_id::UINT32 => ("uint32_t", "uint32", "PTEROS_KIND_UINT32"),
        type_id::INT64 => ("int64_t", "int64", "PTEROS_KIND_INT64"),
        type_id::UINT64 => ("uint64_t", "uint64", "PTEROS_KIND_UINT64"),
        type_id::FLOAT => ("float", "float", "PTEROS_KIND_FLOAT"),
        type_id::DOUBLE => ("double", "double", "PTEROS_KIND_DOUBLE"),
        type_id::STRING | type_id::BOUNDED_STRING => {
            ("rosidl_runtime_c__String", "String", "PTEROS_KIND_STRING")
        }
        type_id::WSTRING | type_id::BOUNDED_WSTRING => (
            "rosidl_runtime_c__U16String",
            "U16String",
            "PTEROS_KIND_WSTRING",
        ),
        _ => return None,
    };
    Some(ElementWords { c, sequence, kind })
}

/// A constant, as rosidl_generator_c declares it: integers and booleans as enumerators,
/// others as static constants.
fn declare_constant(ty: &str, constant: &ConstantSpec, text: &mut String) {
    let name = format!("{ty}__{}", constant.name);
    let _ = match &constant.value {
        Literal::Bool(value) => writeln!(text, "enum {{ {name} = {} }};", u8::from(*value)),
        Literal::Int(value) => {
            let (c, literal) = integer(&constant.ty, *value);
            match c {
                "" => writeln!(text, "enum {{ {name} = {literal} }};"),
                c => writeln!(text, "static const {c} {name} = {literal};"),
            }
        }
        Literal::Float(value) => {
            let (c, suffix) = match constant.ty {
                BaseType::Float32 => ("float", "f"),
                _ => ("double", ""),
            };
            let literal = match value {
                value if value.is_nan() => "NAN".into(),
                &f64::INFINITY => "INFINITY".into(),
                &f64::NEG_INFINITY => "-INFINITY".into(),
                value => format!("{value:?}{suffix}"),
            };
            writeln!(text, "static const {c} {name} = {literal};")
        }
        Literal::Text(value) => {
            writeln!(
                text,
                "static const char *const {name} = {};",
                c_string(value)
            )
        }
        Literal::List(_) => Ok(()),
    };
}

/// Type of a static constant, "" for an enumerator, and the literal.
fn integer(ty: &BaseType, value: i128) -> (&'static str, String) {
    match ty {
        BaseType::Int64 if value == i128::from(i64::MIN) => ("int64_t", "INT64_MIN".into()),
        BaseType::Int64 => ("int64_t", format!("INT64_C({value})")),
        BaseType::Uint64 => ("uint64_t", format!("UINT64_C({value})")),
        BaseType::Uint32 => ("uint32_t", format!("UINT32_C({value})")),
        BaseType::Int32 if value == i128::from(i32::MIN) => ("", "INT32_MIN".into()),
        _ => ("", value.to_string()),
    }
}

fn c_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for byte in text.bytes() {
        match byte {
            b'"' | b'\\' | b'?' => {
                quoted.push('\\');
                quoted.push(char::from(byte));
            }
            b' '..=b'~' => quoted.push(char::from(byte)),
            other => {
                // Three digits end an octal escape.
                let _ = write!(quoted, "\\{other:03o}");
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_the_names_that_rosidl_gives_them() {
        for (name, file) in [
            ("String", "string"),
            ("UInt8MultiArray", "u_int8_multi_array"),
            ("SetBool", "set_bool"),
            ("TFMessage", "tf_message"),
            ("AddTwoInts", "add_two_ints"),
            ("ColorRGBA", "color_rgba"),
            ("Vector3Stamped", "vector3_stamped"),
        ] {
            assert_eq!(snake_case(name), file);
        }
        assert_eq!(
            header_path("example_interfaces/srv/AddTwoInts_Request"),
            "example_interfaces/srv/add_two_ints.h"
        );
    }

    #[test]
    fn constants_that_are_no_finite_numbers_are_those_of_math_h() {
        let constant = |ty: BaseType, value: f64| {
            let mut text = String::new();
            let constant = ConstantSpec {
                ty,
                name: "X".into(),
                value: Literal::Float(value),
                comments: Vec::new(),
                line: 1,
            };
            declare_constant("p__msg__Some", &constant, &mut text);
            text
        };
        let double = constant(BaseType::Float64, f64::NEG_INFINITY);
        assert_eq!(double, "static const double p__msg__Some__X = -INFINITY;\n");
        let float = constant(BaseType::Float32, f64::NAN);
        assert_eq!(float, "static const float p__msg__Some__X = NAN;\n");
        let finite = constant(BaseType::Float32, 1.5);
        assert_eq!(finite, "static const float p__msg__Some__X = 1.5f;\n");
    }

    #[test]
    fn constants_defaults_and_keywords_are_c() {
        let mut library = InterfaceLibrary::default();
        let text = "int64 BIG=-9223372036854775808\nstring NAME=\"a\\\"b\"\nuint8 ONE=1\nint32 default 7\nbool static_assert\nuint8 wchar_t\nuint8 linux\nuint8 co_await\nstring[<=2] texts\nbool[3] flags\n";
        library.insert_text("p", InterfaceKind::Message, "Some", text, "Some.msg");
        let files = c_sources(&library, &["p"]).unwrap();
        let [header, source] = files.as_slice() else {
            panic!("{files:?}");
        };
        assert_eq!(
            (header.path.as_str(), source.path.as_str()),
            ("p/msg/some.h", "p/p.c")
        );
        for line in [
            "static const int64_t p__msg__Some__BIG = INT64_MIN;",
            "static const char *const p__msg__Some__NAME = \"a\\\"b\";",
            "enum { p__msg__Some__ONE = 1 };",
            "  int32_t default_;",
            "  bool static_assert_;",
            "  uint8_t wchar_t_;",
            "  uint8_t linux_;",
            "  uint8_t co_await_;",
            "  rosidl_runtime_c__String__Sequence texts;",
            "  bool flags[3];",
        ] {
            assert!(header.text.contains(line), "{line}\n{}", header.text);
        }
        let member = "{\"default\", NULL, (uint32_t)offsetof(p__msg__Some, default_), 0, 0, PTEROS_KIND_INT32, 0, {0, 0}},";
        assert!(source.text.contains(member), "{}", source.text);
        assert!(source.text.contains("p__msg__Some__defaults, sizeof"));
    }
}
