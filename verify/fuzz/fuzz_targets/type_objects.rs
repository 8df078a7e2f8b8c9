//! TypeInformation, TypeLookup messages and TypeObjects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_test_support::fuzz::types::type_objects(data));
