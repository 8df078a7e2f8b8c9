//! Keystores on the command line: created, used with a policy, revoked and checked.

use crate::support::{Domain, assert_contains, finish, start};
use pteros_test_support::folder::Folder;

#[test]
fn a_keystore_is_created_used_revoked_and_checked() {
    let domain = Domain::new();
    let folder = Folder::new("cli-security");
    let run = |words: &str| {
        let mut command = domain.command(words.split(' '));
        command.current_dir(&folder);
        finish(command)
    };
    let made = run("security init ks -e /arm").ok();
    assert!(
        made.contains("/, /arm") && made.contains("ROS_SECURITY_STRATEGY=Enforce"),
        "{made}"
    );
    assert_eq!(run("security list_enclaves ks").ok(), "/\n/arm\n");
    let governance = std::fs::read_to_string(folder.join("ks/enclaves/governance.xml")).unwrap();
    assert!(governance.contains(&format!("<id>{}</id>", domain.id())));
    let weak = run("security check ks").ok();
    assert!(
        weak.contains("weak:") && !weak.contains("broken:"),
        "{weak}"
    );
    assert!(run("security check ks --strict").failed(1).is_empty());

    let error = run("security create_keystore ks").failed(1);
    assert!(error.contains("there is one already"), "{error}");
    let error = run("security create_enclave ks ../arm").failed(1);
    assert!(error.contains("does not begin with /"), "{error}");
    let error = run("security create_permission ks /arm nothing.xml").failed(1);
    assert_contains(&error, "nothing.xml: file: cannot be read");

    assert!(
        run("security revoke ks /arm")
            .ok()
            .starts_with("revoked: /arm with serial ")
    );
    let broken = run("security check ks --json");
    assert_eq!(broken.code, Some(1));
    assert!(broken.out.contains("was revoked at"), "{}", broken.out);
    run("security create_enclave ks /arm").ok();
    run("security sign ks").ok();
    run("security check ks").ok();
}

#[test]
fn a_keystore_becomes_files_for_zenoh_that_are_not_replaced_unasked() {
    let domain = Domain::new();
    let folder = Folder::new("cli-security-zenoh");
    let run = |words: &str| {
        let mut command = domain.command(words.split(' '));
        command.current_dir(&folder);
        finish(command)
    };
    run("security init ks -e /arm").ok();
    let written = run("security create_zenoh_config ks").ok();
    let names = ["zenohd/zenoh_router", "zenoh_session", "arm/zenoh_session"];
    let lines = names.map(|name| format!("written: ks/enclaves/{name}.json5\n"));
    assert_eq!(written, lines.concat());
    let router = folder.join("ks/enclaves/zenohd/zenoh_router.json5");
    let read = || std::fs::read_to_string(&router).unwrap();
    let first = read();
    let certificate = folder
        .canonicalize()
        .unwrap()
        .join("ks/enclaves/zenohd/cert.pem");
    assert_contains(
        &first,
        &format!("listen_certificate: \"{}\"", certificate.display()),
    );
    assert_contains(&first, &format!("\"{}/*/*/*/**\"", domain.id()));

    assert_eq!(
        run("security create_zenoh_config ks").ok(),
        written,
        "the same content"
    );
    let other = "security create_zenoh_config ks --listen tls/10.0.0.1:7447";
    let error = run(other).failed(1);
    assert_contains(&error, "zenoh_router.json5: exists with another content");
    assert_eq!(read(), first);
    run(&format!("{other} --overwrite --keystore-path /etc/ks")).ok();
    assert_contains(&read(), "endpoints: [\"tls/10.0.0.1:7447\"]");
    assert_contains(&read(), "\"/etc/ks/enclaves/zenohd/key.pem\"");

    let error = run("security create_zenoh_config ks -e /leg").failed(1);
    assert_contains(&error, "enclave '/leg'");
    let error = run("security create_zenoh_config ks --connect tcp/localhost:7447").failed(2);
    assert_contains(&error, "write tls/HOST:PORT");
    run("security revoke ks /arm").ok();
    let left = run("security create_zenoh_config ks --overwrite");
    assert_eq!(left.code, Some(0));
    assert_contains(&left.err, "enclave '/arm': is revoked");
}

#[test]
fn the_graph_becomes_a_policy_and_permissions() {
    let domain = Domain::new();
    let folder = Folder::new("cli-security-policy");
    let run = |words: &str| {
        let mut command = domain.command(words.split(' '));
        command.current_dir(&folder);
        finish(command)
    };
    let words = "topic pub --node-name arm /robot/scan std_msgs/msg/Int32 -r 1 --print 0";
    let words: Vec<&str> = words.split(' ').chain(["data: 1"]).collect();
    let mut publishing = start(domain.command(words));
    assert_eq!(publishing.line(), "publisher: beginning loop");
    // Discovery of a busy graph may take several attempts.
    let policy = folder.join("policy.xml");
    let generate = format!(
        "security generate_policy --spin-time 1 {}",
        policy.display()
    );
    let generated = domain.run_until(&generate, |_| {
        std::fs::read_to_string(&policy)
            .is_ok_and(|text| text.contains("<topic>/robot/scan</topic>"))
    });
    generated.ok();
    run("security generate_artifacts -k ks -p policy.xml").ok();
    let permissions = folder.join("ks/enclaves/permissions.xml");
    let permissions = std::fs::read_to_string(permissions).unwrap();
    assert_contains(&permissions, "<topic>rt/robot/scan</topic>");
    assert!(!permissions.contains('*'), "{permissions}");
    run("security check ks").ok();
}

#[test]
fn a_secured_node_does_not_start_without_an_enclave() {
    let domain = Domain::new();
    let keystore = Folder::new("cli-security-none");
    let start = |variables: &[(&str, &str)]| {
        let mut command = domain.command("node list".split(' '));
        command.envs(variables.iter().copied());
        finish(command)
    };
    let on = ("ROS_SECURITY_ENABLE", "true");
    let at = ("ROS_SECURITY_KEYSTORE", keystore.to_str().unwrap());
    for (variables, word) in [
        (&[on][..], "ROS_SECURITY_KEYSTORE"),
        (&[on, at], "enclaves"),
        (
            &[on, at, ("ROS_SECURITY_STRATEGY", "enforce")],
            "ROS_SECURITY_STRATEGY",
        ),
        (&[("ROS_SECURITY_ENABLE", "yes")], "ROS_SECURITY_ENABLE"),
    ] {
        let error = start(variables).failed(1);
        assert!(error.contains(word), "{error}");
    }
    // Only the permissive strategy allows an unsecured node if there is no enclave.
    start(&[on, at, ("ROS_SECURITY_STRATEGY", "Permissive")]).ok();
}
