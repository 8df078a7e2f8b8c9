//! Interface files.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::text::interface_file(data));
