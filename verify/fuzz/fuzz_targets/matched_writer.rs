//! A matched pair, its writer under requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::pair_attack::matched_writer(data));
