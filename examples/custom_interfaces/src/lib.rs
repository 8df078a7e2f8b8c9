//! A package with its own interfaces:
//! `custom_interfaces::custom_interfaces::msg::Arm`.
//!
//! The folder `interfaces` holds the definitions, `build.rs` has one line, and the
//! line below includes the generated code.

#![forbid(unsafe_code)]

include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
