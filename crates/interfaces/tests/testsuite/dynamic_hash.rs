//! A resolved type keeps its type hash: every standard type, resolved and described
//! again, has the same hash.

use pteros_interfaces::library;
use pteros_msg::dynamic::DynamicType;

#[test]
fn every_standard_type_keeps_its_hash_through_resolution() {
    let library = library();
    let mut checked = 0;
    for name in library.names().filter(|n| n.contains("/msg/")) {
        let description = library.describe(name).unwrap();
        let ty = DynamicType::new(&description).unwrap();
        assert_eq!(ty.hash(), library.type_hash(name).unwrap(), "{name}");
        checked += 1;
    }
    assert!(checked > 150, "only {checked} types");
}
