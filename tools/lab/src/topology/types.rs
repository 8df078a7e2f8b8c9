//! Message types of topology files. `stamped10b` and others belong to the package
//! `irobot_interfaces_plugin`: a header of `performance_test_msgs` (timestamp,
//! number, frequency, size) and `data`. Other types need their package.

use pteros::interfaces::library as standard;
use pteros::msg::dynamic::{DynamicService, DynamicType, Element, Shape};
use pteros::msg::library::{InterfaceLibrary, split_full_name};
use pteros::msg::schema::InterfaceKind;
use pteros::msg::suggest::did_you_mean;

/// The package of types without one.
const DEFAULT_PACKAGE: &str = "irobot_interfaces_plugin";
const HEADER_PACKAGE: &str = "performance_test_msgs";

/// Names and payloads of [`DEFAULT_PACKAGE`]'s messages. Sizes on the wire are
/// those of ros2-performance 2023, so that its processes interoperate with Pteros.
const STAMPED: &[(&str, &str)] = &[
    ("Stamped10b", "byte[10]"),
    ("Stamped100b", "byte[100]"),
    ("Stamped250b", "byte[250]"),
    ("Stamped1kb", "byte[1024]"),
    ("Stamped10kb", "byte[10240]"),
    ("Stamped50kb", "byte[51200]"),
    ("Stamped100kb", "byte[102400]"),
    ("Stamped250kb", "byte[256000]"),
    ("Stamped500kb", "byte[512000]"),
    ("Stamped600kb", "byte[614400]"),
    ("Stamped1mb", "byte[1048576]"),
    ("Stamped4mb", "byte[4194304]"),
    ("Stamped5mb", "byte[5120000]"),
    ("Stamped8mb", "byte[8388608]"),
    ("StampedVector", "byte[]"),
    ("StampedInt64", "int64[1]"),
    ("Stamped4Int32", "int32[4]"),
    ("Stamped3Float32", "float32[3]"),
    ("Stamped4Float32", "float32[4]"),
    ("Stamped9Float32", "float32[9]"),
    ("Stamped12Float32", "float32[12]"),
];

/// ROS 2's standard interfaces and those of the framework.
pub fn library() -> InterfaceLibrary {
    let mut library = standard().clone();
    add_to(&mut library);
    library
}

/// Adds the framework's interfaces to others.
pub fn add_to(library: &mut InterfaceLibrary) {
    let header =
        "builtin_interfaces/Time stamp\nuint32 tracking_number\nfloat32 frequency\nuint32 size\n";
    let mut insert = |package: &str, kind, name: &str, text: String| {
        library.insert_text(package, kind, name, text, format!("{package}/{name}"));
    };
    let (message, service) = (InterfaceKind::Message, InterfaceKind::Service);
    insert(HEADER_PACKAGE, message, "PerformanceHeader", header.into());
    let stamped = |data: &str| format!("{HEADER_PACKAGE}/PerformanceHeader header\n{data} data\n");
    for (name, data) in STAMPED {
        insert(DEFAULT_PACKAGE, message, name, stamped(data));
    }
    let both = |data: &str| format!("{}---\n{}", stamped(data), stamped(data));
    insert(DEFAULT_PACKAGE, service, "Stamped10b", both("byte[10]"));
    insert(HEADER_PACKAGE, message, "Sample", stamped("byte[1]"));
    insert(HEADER_PACKAGE, service, "Sample", both("byte"));
}

/// The full name of a message type in a file, or an error text.
pub(super) fn message(library: &InterfaceLibrary, name: &str) -> Result<String, String> {
    let full = find(library, name, InterfaceKind::Message)?;
    let described = library.describe(&full).map_err(|e| e.to_string())?;
    DynamicType::new(&described).map_err(|e| e.to_string())?;
    Ok(full)
}

/// The full name of a service type in a file, or an error text.
pub(super) fn service(library: &InterfaceLibrary, name: &str) -> Result<String, String> {
    let full = find(library, name, InterfaceKind::Service)?;
    DynamicService::new(library, &full).map_err(|e| e.to_string())?;
    Ok(full)
}

/// `stamped10b`, `package::stamped10b`, `package/Stamped10b` or
/// `package/msg/Stamped10b`.
fn find(library: &InterfaceLibrary, name: &str, kind: InterfaceKind) -> Result<String, String> {
    let last = name.rsplit(['/', ':']).next().unwrap_or(name);
    let package = match name.split_once("::") {
        Some((package, _)) => package,
        None => name
            .split_once('/')
            .map_or(DEFAULT_PACKAGE, |parts| parts.0),
    };
    let of_kind = || {
        let names = library.names();
        names.filter(move |full| split_full_name(full).is_some_and(|(_, of, _)| of == kind))
    };
    let mut in_package = of_kind().filter(|full| {
        let Some((of, _, own)) = split_full_name(full) else {
            return false;
        };
        of == package && (own == last || lower_name(own) == last)
    });
    if let Some(full) = in_package.next() {
        return Ok(full.into());
    }
    let short = |full: &str| {
        let Some((of, kind, own)) = split_full_name(full) else {
            return String::new();
        };
        if of == DEFAULT_PACKAGE {
            lower_name(own)
        } else {
            format!("{of}/{kind}/{own}")
        }
    };
    let known: Vec<String> = of_kind().map(short).collect();
    let hint = did_you_mean(name, known.iter().map(String::as_str));
    Err(format!(
        "no such type{hint} A type is stamped10b … stamped8mb, stamped_vector or another of \
         {DEFAULT_PACKAGE}, package::name, or a standard one as package/{kind}/Name"
    ))
}

/// Name of the C++ header by rosidl: `Stamped4Int32` is `stamped4_int32`.
fn lower_name(name: &str) -> String {
    let mut lower = String::new();
    let mut was_upper = true;
    for letter in name.chars() {
        let is_upper = letter.is_ascii_uppercase();
        if is_upper && !was_upper {
            lower.push('_');
        }
        lower.push(letter.to_ascii_lowercase());
        was_upper = is_upper;
    }
    lower
}

/// Whether a message has a byte vector `data` of variable size.
pub(super) fn has_vector(library: &InterfaceLibrary, full: &str) -> bool {
    let described = library.describe(full).ok();
    let ty = described.and_then(|described| DynamicType::new(&described).ok());
    ty.is_some_and(|ty| is_vector(&ty))
}

/// As [`has_vector`], of a type.
pub(super) fn is_vector(ty: &DynamicType) -> bool {
    ty.field("data").is_some_and(|(_, field)| {
        let bytes = matches!(field.element, Element::Byte | Element::U8);
        bytes && matches!(field.shape, Shape::Sequence { .. })
    })
}

/// Whether a message begins with the framework's header.
pub(super) fn has_header(ty: &DynamicType) -> bool {
    ty.field("header").is_some_and(|(_, field)| {
        matches!(&field.element, Element::Message(header)
            if header.name() == "performance_test_msgs/msg/PerformanceHeader")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_every_notation_of_the_files() {
        let library = library();
        for (name, full) in [
            (
                "stamped4_int32",
                "irobot_interfaces_plugin/msg/Stamped4Int32",
            ),
            (
                "stamped12_float32",
                "irobot_interfaces_plugin/msg/Stamped12Float32",
            ),
            ("stamped_int64", "irobot_interfaces_plugin/msg/StampedInt64"),
            ("stamped8mb", "irobot_interfaces_plugin/msg/Stamped8mb"),
            (
                "performance_test_msgs::sample",
                "performance_test_msgs/msg/Sample",
            ),
            ("std_msgs/msg/String", "std_msgs/msg/String"),
            ("sensor_msgs/PointCloud2", "sensor_msgs/msg/PointCloud2"),
            (
                "geometry_msgs::twist_stamped",
                "geometry_msgs/msg/TwistStamped",
            ),
        ] {
            assert_eq!(message(&library, name).as_deref(), Ok(full), "{name}");
        }
        let full = "irobot_interfaces_plugin/srv/Stamped10b";
        assert_eq!(service(&library, "stamped10b").as_deref(), Ok(full));
        let wrong = message(&library, "stamped10bb").expect_err("no such type");
        assert!(
            wrong.contains("did you mean") && wrong.contains("stamped10b"),
            "{wrong}"
        );
    }

    #[test]
    fn the_sizes_of_the_framework_are_on_the_wire() {
        let library = library();
        let full = message(&library, "stamped4mb").expect("known");
        let ty = DynamicType::new(&library.describe(&full).expect("described")).expect("a type");
        let message = pteros::msg::dynamic::DynamicMessage::new(&ty);
        let bytes = message.payload_bytes(pteros::msg::cdr::Representation::Xcdr1);
        // Encapsulation, stamp, number, frequency, size.
        assert_eq!(bytes, 4 + 8 + 4 + 4 + 4 + 4_194_304);
        assert!(has_header(&ty) && !is_vector(&ty));
    }
}
