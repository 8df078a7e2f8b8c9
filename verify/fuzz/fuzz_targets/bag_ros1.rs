//! Bags of ROS 1.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| pteros_fuzz::bag::read(pteros_fuzz::bag::ROS1, data));
