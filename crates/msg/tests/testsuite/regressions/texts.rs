//! Texts of users and files: interface definitions and YAML. There is no XML here,
//! whose parsers had advisories of their own.

use pteros_msg::dynamic::{DynamicMessage, DynamicType};
use pteros_msg::library::InterfaceLibrary;
use pteros_msg::schema::InterfaceKind;

use crate::regressions::{dynamic, within};

/// Describes and resolves a message of this text.
fn resolves(text: &str) -> bool {
    let mut library = InterfaceLibrary::new();
    let kind = InterfaceKind::Message;
    library.insert_text("regressions", kind, "Piece", text.to_string(), "Piece.msg");
    let described = library.describe("regressions/msg/Piece");
    described.is_ok_and(|description| DynamicType::new(&description).is_ok())
}

fn yaml(ty: &DynamicType, text: &str) -> bool {
    within(64 * text.len() as i64 + (1 << 20), || {
        DynamicMessage::from_yaml(ty, text).is_ok()
    })
}

/// CVE-2025-14543 (RTI) and its ancestors: entities that stand for ten others,
/// ten times over. YAML's form of it are aliases, which are refused.
#[test]
fn yaml_aliases_are_refused() {
    let ty = dynamic("string[] names\nstring data");
    let mut text = String::from("a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n");
    for level in 1..12 {
        let below = format!("*a{}, ", level - 1).repeat(9);
        text.push_str(&format!("a{level}: &a{level} [{below}]\n"));
    }
    text.push_str("names: *a11\n");
    assert!(!yaml(&ty, &text));
    assert!(!yaml(&ty, "names: &all [*all]\n"));
    assert!(!yaml(&ty, "<<: *nothing\n"));
}

/// CVE-2021-38441 and 38443 (Cyclone DDS) and CVE-2021-38427 and 38433 (RTI):
/// configuration in XML overflowed stack and heap by nesting and length.
#[test]
fn nesting_and_length_have_limits() {
    let ty = dynamic("string[] names\nstring data\nfloat64[] numbers\nbyte[] raw");
    for (open, close) in [
        ("[", "]"),
        ("{a: ", "}"),
        ("- ", ""),
        ("? ", ""),
        ("!!t ", ""),
    ] {
        for depth in [100, 5_000] {
            let text = format!("names: {}x{}", open.repeat(depth), close.repeat(depth));
            assert!(!yaml(&ty, &text) || open == "!!t ", "{open} {depth}");
        }
    }
    let long = "x".repeat(200_000);
    assert!(yaml(&ty, &format!("data: {long}")));
    assert!(!yaml(&ty, &format!("{long}: 1")));
    assert!(!yaml(&ty, &format!("numbers: [{}", "1, ".repeat(20_000))));
    assert!(!yaml(&ty, &format!("raw: [{}]", "9".repeat(20_000))));
}

/// The same for interface files: arrays that multiply, lines without end,
/// numbers without end (the XML parsers of the advisories above, in ROS 2's own
/// language).
#[test]
fn huge_interface_files_are_errors() {
    within(64 << 20, || {
        for capacity in [
            "4294967295",
            "18446744073709551615",
            "99999999999999999999",
            "-1",
            "0",
        ] {
            assert!(!resolves(&format!("uint8[{capacity}] a\n")), "{capacity}");
        }
        assert!(!resolves("Piece[3] again\n"));
        assert!(!resolves(&format!("int32 a {}\n", "9".repeat(100_000))));
        assert!(!resolves(&format!("string<={} a\n", "9".repeat(100_000))));
        assert!(!resolves(&format!("int32[] a [{}\n", "[".repeat(100_000))));
        assert!(!resolves(&format!("{} a\n", "x/".repeat(50_000))));
        assert!(!resolves(&format!("string a \"{}\n", "\\".repeat(99_999))));
        let many: String = (0..5_000).map(|n| format!("int32 f{n}\n")).collect();
        assert!(resolves(&many));
        assert!(!resolves(&format!("{many}int32 f7\n")), "twice f7");
    });
}

/// CVE-2025-63829 (Fast DDS, times out of range), where people write times:
/// numbers that do not fit are errors, not something else.
#[test]
fn numbers_that_do_not_fit_are_errors() {
    let ty = dynamic("builtin_interfaces/Time t\nuint8 small\nfloat32 real");
    for text in [
        "t: {sec: 2147483648}",
        "t: {nanosec: -1}",
        "t: {nanosec: 4294967296}",
        "small: 256",
        "small: 1e400",
        "real: 1e39",
        "t: 5",
    ] {
        assert!(!yaml(&ty, text), "{text}");
    }
}
