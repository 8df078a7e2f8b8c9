//! WLP payloads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::discovery::liveliness_data(data));
