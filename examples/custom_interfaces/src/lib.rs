//! A package with interfaces of its own: `custom_interfaces::custom_interfaces::msg::Arm`.
//!
//! The folder `interfaces` holds the definitions, `build.rs` has one line, and the
//! line below takes in what it made.

#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
