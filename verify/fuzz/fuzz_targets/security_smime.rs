//! A signed document.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::security::security_smime(data));
