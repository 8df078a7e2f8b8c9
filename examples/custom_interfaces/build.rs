//! Generates Rust types for all definitions in `interfaces`.
fn main() {
    pteros_interfaces::build::generate_package("interfaces");
}
