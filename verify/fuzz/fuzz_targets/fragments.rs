//! A matched pair, its reader under fragments.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::pair_attack::fragments(data));
