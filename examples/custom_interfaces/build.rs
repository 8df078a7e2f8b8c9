//! Makes Rust types of everything in `interfaces`.
fn main() {
    pteros_interfaces::build::generate_package("interfaces");
}
