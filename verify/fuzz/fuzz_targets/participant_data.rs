//! SPDP payloads.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::discovery::participant_data(data));
