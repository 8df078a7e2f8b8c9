//! MCAP files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::bag::read(pteros_fuzz::bag::MCAP, data));
