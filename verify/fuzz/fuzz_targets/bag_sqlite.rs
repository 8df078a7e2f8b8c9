//! Databases of rosbag2.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::bag::read(pteros_fuzz::bag::SQLITE, data));
