//! The generated code of the key tests equals the generator's current output. A program
//! of its own, because it must report this also when that code does not compile.

use pteros_msg::generate::{GenerateOptions, Generator};
use pteros_msg::library::InterfaceLibrary;

#[path = "testsuite/keys/definitions.rs"]
mod definitions;

#[test]
fn the_types_of_the_key_tests_are_what_the_generator_makes() {
    let mut library = InterfaceLibrary::new();
    library.insert_definitions(definitions::DEFINITIONS);
    let options = GenerateOptions::default();
    let text = Generator::new(&library, &options).single_file(&["keyed"]);
    let text = text.unwrap();
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/testsuite/keys/generated.txt"
    );
    if std::fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    let today = concat!(env!("CARGO_TARGET_TMPDIR"), "/generated.txt");
    std::fs::write(today, &text).unwrap();
    panic!("the generator makes something else today; if it should, cp {today} {path}");
}
