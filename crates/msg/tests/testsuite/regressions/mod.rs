//! Regression tests of CVEs and bugs: payloads, type descriptions and texts that
//! broke some DDS stack or ROS 2, given to our decoders and parsers. Each test
//! names the advisory or issue and describes in our words what went wrong there.
//! Memory must stay in proportion to the input. Tests of packets are in
//! `pteros-rtps`.

mod payloads;
#[cfg(feature = "std")]
mod texts;
mod types;

use pteros_interfaces as interfaces;
use pteros_msg::dynamic::DynamicType;
use pteros_msg::schema::InterfaceKind;
use pteros_test_support::allocations;

/// Runs a reader; it may hold at most `bytes_max` more than before.
fn within<T>(bytes_max: i64, read: impl FnOnce() -> T) -> T {
    allocations::reset_peak();
    let before = allocations::live_bytes().0;
    let result = read();
    let peak = allocations::live_bytes().1 - before;
    assert!(peak <= bytes_max, "{peak} bytes, {bytes_max} allowed");
    result
}

/// A type of these fields, with the standard packages to draw on.
fn dynamic(fields: &str) -> DynamicType {
    let mut library = interfaces::library().clone();
    let kind = InterfaceKind::Message;
    library.insert_text(
        "regressions",
        kind,
        "Piece",
        fields.to_string(),
        "Piece.msg",
    );
    let description = library
        .describe("regressions/msg/Piece")
        .expect("a good text");
    DynamicType::new(&description).expect("a complete type")
}
