//! MCAP files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::bag::read(pteros_test_support::fuzz::bag::MCAP, data));
