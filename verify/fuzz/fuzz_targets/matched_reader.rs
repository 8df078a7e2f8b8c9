//! A matched pair, its reader under submessages.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::pair_attack::matched_reader(data));
