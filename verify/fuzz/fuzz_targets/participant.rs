//! Participants under forged discovery.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::participant_attack::participant(data));
