//! Transient and persistent publishers on the command line: samples of a killed one
//! are served by the next, listed and removed.

use pteros_test_support::folder::Folder;

use crate::support::{Domain, assert_contains, finish, start};

#[test]
fn stored_samples_are_served_by_the_next_publisher_then_listed_and_removed() {
    let domain = Domain::new();
    let folder = Folder::absent("cli-store");
    let run = |words: &str| {
        let mut command = domain.command(words.split(' '));
        command.env("PTEROS_STORE_DIR", &folder);
        finish(command)
    };
    let publish = |n: i32| {
        let words = "topic pub /map std_msgs/msg/Int32 --once -w 0 --qos-depth 2 --store maps \
                     --qos-durability persistent";
        let value = format!("data: {n}");
        let mut command = domain.command(words.split_whitespace().chain([value.as_str()]));
        command.env("PTEROS_STORE_DIR", &folder);
        finish(command).ok();
    };
    (1..=3).for_each(publish);
    let listed = run("store list").ok();
    assert_contains(
        &listed,
        "maps: rt/map [std_msgs::msg::dds_::Int32_], 2 samples, 16 bytes",
    );
    let shown = run("store show maps --json").ok();
    assert!(shown.contains("\"topic\": \"rt/map\""), "{shown}");

    let words = "topic pub /map std_msgs/msg/Int32 -r 0.01 --qos-depth 2 --store maps \
                 --qos-durability persistent --print 0";
    let words: Vec<&str> = words.split_whitespace().chain(["data: 4"]).collect();
    let mut command = domain.command(words);
    command.env("PTEROS_STORE_DIR", &folder);
    let mut serving = start(command);
    assert_eq!(serving.line(), "publisher: beginning loop");
    let echo = "topic echo /map --csv --qos-durability transient --qos-reliability reliable";
    let mut echo = domain.start(&format!("{echo} --qos-depth 10"));
    assert_eq!([echo.line(), echo.line()], ["3", "4"]);
    let error = run("store clear maps").failed(1);
    assert!(error.contains("in use by another publisher"), "{error}");
    drop(serving);
    assert!(run("store clear maps").ok().starts_with("removed "));
    assert_eq!(run("store list").ok(), "");
    let error = run("store show maps").failed(1);
    assert!(error.contains("no store \"maps\""), "{error}");
}

/// Among these are files that make the database panic.
#[test]
fn damaged_stores_are_named_one_by_one_and_the_list_fails() {
    let domain = Domain::new();
    let folder = Folder::absent("cli-damaged-stores");
    let words = "topic pub /map std_msgs/msg/Int32 --once -w 0 --store maps \
                 --qos-durability persistent";
    let mut command = domain.command(words.split_whitespace().chain(["data: 1"]));
    command.env("PTEROS_STORE_DIR", &folder);
    finish(command).ok();
    let file = std::fs::read_dir(&folder).unwrap();
    let file = file.map(|entry| entry.unwrap().path()).next().unwrap();
    let good = std::fs::read(&file).unwrap();
    let extension = file.extension().unwrap().to_str().unwrap();
    for n in 0..150 {
        let mut bad = good.clone();
        let at = n * good.len() / 150;
        bad[at..(at + 64).min(good.len())].fill(0xff);
        let name = format!("damaged-{n:03}.{extension}");
        std::fs::write(folder.join(name), bad).unwrap();
    }
    let mut command = domain.command(["store", "list"]);
    command.env("PTEROS_STORE_DIR", &folder);
    let listed = command.output().unwrap();
    let [lines, errors] = [&listed.stdout, &listed.stderr].map(|all| String::from_utf8_lossy(all));
    assert_eq!(listed.status.code(), Some(1), "{lines}{errors}");
    assert_eq!(lines.lines().count(), 151, "{lines}");
    assert_contains(
        &lines,
        "maps: rt/map [std_msgs::msg::dds_::Int32_], 1 samples",
    );
    assert!(!errors.contains("panicked"), "{errors}");
    assert_contains(&errors, "of 151 stores cannot be read");
}
