//! SEDP payloads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::discovery::endpoint_data(data));
