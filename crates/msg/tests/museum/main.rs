//! The museum of failures, wing of messages: payloads, type descriptions and
//! texts that broke some DDS stack or ROS 2, given to our readers of them. Each
//! story names the advisory or issue it stands for and says in our words what
//! went wrong there; its rule is that memory stays in proportion to the input.
//! Packets have their wing in `pteros-rtps`.

#[path = "../../../pteros/tests/walk/allocations.rs"]
mod allocations;
mod payloads;
#[cfg(feature = "std")]
mod texts;
mod types;

use pteros_interfaces as interfaces;
use pteros_msg::dynamic::DynamicType;
use pteros_msg::schema::InterfaceKind;

#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;

/// Runs a reader; it may hold at most `bytes_max` more than before.
fn within<T>(bytes_max: i64, read: impl FnOnce() -> T) -> T {
    allocations::forget_peak();
    let before = allocations::held().0;
    let result = read();
    let peak = allocations::held().1 - before;
    assert!(peak <= bytes_max, "{peak} bytes, {bytes_max} allowed");
    result
}

/// A type of these fields, with the standard packages to draw on.
fn dynamic(fields: &str) -> DynamicType {
    let mut library = interfaces::library().clone();
    let kind = InterfaceKind::Message;
    library.insert_text("museum", kind, "Piece", fields.to_string(), "Piece.msg");
    let description = library.describe("museum/msg/Piece").expect("a good text");
    DynamicType::new(&description).expect("a complete type")
}
