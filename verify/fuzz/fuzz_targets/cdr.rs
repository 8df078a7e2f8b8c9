//! Payloads as generated types, in both representations.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::cdr::cdr(data));
