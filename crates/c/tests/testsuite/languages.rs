//! Programs of other languages on the C API: Go and Node.js, where this machine has them.

use std::path::Path;
use std::process::Command;

use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;

use crate::harness::{Compiler, TIMEOUT, build_folder, c_compilers, crate_folder, start};

/// Publishes for a program until it has heard three messages, and expects its end.
fn is_heard(program: &Path, domain: u32, arguments: &[&str]) {
    let context = Context::with_options(ContextOptions::local(domain)).unwrap();
    let node = context.create_node("rust_talker").unwrap();
    let publisher = node
        .create_publisher::<Text>("chatter".keep_last(50))
        .unwrap();
    let mut program = start(program, domain, arguments);
    assert!(publisher.wait_for_matched(1, TIMEOUT));
    for text in ["one", "zwei", "три"] {
        publisher.publish(&Text { data: text.into() }).unwrap();
        program.expect(&format!("I heard: [{text}]"));
    }
    program.finish();
}

/// The object files of the generated types, by the first compiler.
fn types(compiler: Compiler) -> Vec<String> {
    let packages = ["std_msgs", "builtin_interfaces"];
    let objects = packages.map(|package| compiler.object(package));
    objects.map(|object| object.display().to_string()).into()
}

#[test]
fn a_listener_of_go_hears_rust() {
    let ([compiler, ..], Ok(_)) = (
        &c_compilers()[..],
        Command::new("go").arg("version").output(),
    ) else {
        return;
    };
    let folder = build_folder();
    let program = folder.join("go_listener");
    let include = crate_folder().join("include");
    let flags = format!(
        "-I{} -I{}",
        include.display(),
        folder.join("types").display()
    );
    // An archive, because cgo names its libraries twice.
    let archive = folder.join("libtypes.a");
    let archived = Command::new("ar")
        .arg("rcs")
        .arg(archive)
        .args(types(*compiler))
        .status();
    assert!(archived.unwrap().success());
    let libraries = format!("-L{0} -Wl,-rpath,{0} -ltypes", folder.display());
    let output = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(crate_folder().join("examples/go"))
        .env("CGO_ENABLED", "1")
        .env("CGO_CFLAGS", flags)
        .env("CGO_LDFLAGS", libraries)
        .env("GOFLAGS", "-mod=mod")
        .env("GOCACHE", folder.with_file_name("go-cache"))
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    is_heard(&program, 178, &[]);
}

#[test]
fn a_listener_of_node_js_hears_rust() {
    const HEADERS: &str = "/usr/include/node";
    let ([compiler, ..], true) = (
        &c_compilers()[..],
        Path::new(HEADERS).join("node_api.h").exists()
            && Command::new("node").arg("--version").output().is_ok(),
    ) else {
        return;
    };
    let folder = build_folder();
    let addon = folder.join("addon.node");
    let output = Command::new("cc")
        .args(["-shared", "-fPIC", "-Wall", "-I", HEADERS, "-I"])
        .arg(crate_folder().join("include"))
        .arg("-I")
        .arg(folder.join("types"))
        .arg(crate_folder().join("examples/node/addon.c"))
        .args(types(*compiler))
        .arg("-o")
        .arg(&addon)
        .arg("-L")
        .arg(folder)
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .arg("-lpteros")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let script = crate_folder().join("examples/node/listener.js");
    let arguments = [script.to_str().unwrap(), addon.to_str().unwrap()];
    is_heard(Path::new("node"), 179, &arguments);
}
