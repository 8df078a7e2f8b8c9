//! TypeInformation, TypeLookup messages and TypeObjects.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::types::type_objects(data));
