//! Datagrams that come to a shield: anything, and what a peer said, bent.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::security::security_crypto_transform(data));
