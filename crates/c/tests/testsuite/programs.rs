//! Programs of C and C++ that check themselves, and print "passed".

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use pteros::msg::cdr::Representation;
use pteros::msg::dynamic::{DynamicMessage, DynamicType};

use crate::harness::{Compiler, c_compilers, cpp_compilers, output, shared_library};

fn passes(compilers: Vec<Compiler>, source: &str, domain: u32) {
    for compiler in compilers {
        let lines = output(&compiler.build(source), domain, &[]);
        assert!(lines.iter().any(|line| line == "passed"), "{lines:#?}");
    }
}

#[test]
fn services_parameters_graph_and_errors_work_from_c() {
    passes(c_compilers(), "tests/programs/services.c", 175);
}

#[test]
fn goals_succeed_are_rejected_and_cancelled_from_c() {
    passes(c_compilers(), "tests/programs/actions.c", 176);
}

#[test]
fn executors_of_c_are_cancelled_and_survive_a_lack_of_descriptors() {
    passes(c_compilers(), "tests/programs/executors.c", 181);
}

#[test]
fn messages_are_borrowed_bounded_and_filtered_from_c() {
    passes(c_compilers(), "tests/programs/messages.c", 182);
}

#[test]
fn lifecycle_nodes_and_transforms_work_from_c() {
    passes(c_compilers(), "tests/programs/lifecycle.c", 183);
}

#[test]
fn actions_of_cpp_are_raii_and_callbacks_are_lambdas() {
    passes(cpp_compilers(), "examples/fibonacci.cpp", 184);
}

#[test]
fn handles_of_cpp_are_raii_and_callbacks_are_lambdas() {
    passes(cpp_compilers(), "examples/adder.cpp", 177);
}

#[test]
fn the_library_exports_what_its_header_declares_and_abi_txt_lists() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |path: &str| std::fs::read_to_string(folder.join(path)).unwrap();
    let abi = read("abi.txt");
    let listed: BTreeSet<&str> = abi.lines().collect();
    let headers = ["include/pteros/types.h", "include/pteros/pteros.h"]
        .map(read)
        .concat();
    let declared: BTreeSet<&str> = headers
        .split("PTEROS_API ")
        .skip(1)
        .filter_map(|rest| rest.split_once('('))
        .filter_map(|(before, _)| before.split([' ', '*']).next_back())
        .filter(|name| name.starts_with("pteros_"))
        .collect();
    assert_eq!(declared, listed, "abi.txt is another list than the headers");
    let output = Command::new("nm")
        .args(["--dynamic", "--defined-only"])
        .arg(shared_library())
        .output();
    let Ok(output) = output else {
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let exported: BTreeSet<&str> = text
        .lines()
        .filter_map(|line| line.split(' ').nth(2))
        .collect();
    assert_eq!(exported, listed, "the library exports another list");
}

#[test]
fn structs_of_all_kinds_of_members_have_the_bytes_of_rust() {
    for compiler in c_compilers() {
        let program = compiler.build("tests/programs/all_types.c");
        let lines = output(&program, 180, &[]);
        assert_eq!(lines.len(), 8, "{lines:#?}");
        for line in lines {
            let (name, hex) = line.split_once(' ').unwrap();
            let description = pteros::interfaces::library().describe(name).unwrap();
            let message = DynamicMessage::new(&DynamicType::new(&description).unwrap());
            let expected = message.to_payload(Representation::Xcdr1);
            let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
            // Rust fills the payload up to a multiple of four, and says so in its header.
            let body = |hex: &str| hex[8..].to_owned();
            assert!(body(&expected).starts_with(&body(hex)), "{name}");
            assert!(expected.len() - hex.len() < 8, "{name}");
        }
    }
}
