//! Generates Rust types from the definitions in `interfaces`.
fn main() {
    pteros_interfaces::build::generate_package("interfaces");
}
