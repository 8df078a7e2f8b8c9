//! SPDP payloads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::discovery::participant_data(data));
