//! Payloads as types known at run time only.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::cdr::dynamic(data));
