//! Log files of a context: creation, names, contents, rotation and write errors.

use pteros_test_support::folder::Folder;
use std::fs;
use std::path::Path;
use std::time::Duration;

use pteros::args::Arguments;
use pteros::log::{LogFileFormat, LogFileOptions};
use pteros::prelude::*;

/// A retry happens a second later; twenty seconds of polling suffice.
const POLL_PERIOD: Duration = Duration::from_millis(50);
const POLLS_MAX: u32 = 400;

fn context(domain: u32, folder: &Path, words: &str, files: LogFileOptions) -> Context {
    let words = format!("--ros-args --disable-stdout-logs {words}");
    let (arguments, _) = Arguments::parse(words.split_whitespace()).unwrap();
    Context::with_options(ContextOptions {
        arguments,
        log_files: LogFileOptions {
            folder: Some(folder.into()),
            ..files
        },
        ..ContextOptions::local(domain)
    })
    .unwrap()
}

#[test]
fn a_file_is_made_with_the_first_message_and_named_as_rcl_names_it() {
    let folder = Folder::absent("log-name");
    let context = context(66, &folder, "", LogFileOptions::default());
    let node = context.create_node("arm").unwrap();
    pteros::debug!(node.logger(), "not said");
    assert_eq!(folder.names(), [] as [&str; 0]);
    pteros::warn!(node.logger(), "{} degrees", 81);
    pteros::error!(node.logger(), "{} degrees", 91);
    let names = folder.names();
    let (name, rest) = names[0]
        .split_once(&format!("_{}_", std::process::id()))
        .unwrap();
    assert!(name.starts_with("testsuite"), "{names:?}");
    let ms: u64 = rest.strip_suffix(".log").unwrap().parse().unwrap();
    assert!(ms > 1_500_000_000_000 && names.len() == 1);
    // Nothing is buffered.
    let text = folder.read(&names[0]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("[WARN] [1") && lines[0].ends_with("[arm]: 81 degrees"));
    assert!(lines[1].starts_with("[ERROR] [1") && lines[1].ends_with("[arm]: 91 degrees"));
}

#[test]
fn the_command_line_names_or_disables_the_log_file() {
    let folder = Folder::absent("log-flags");
    let json = LogFileOptions {
        format: Some(LogFileFormat::Json),
        ..LogFileOptions::default()
    };
    let named = context(67, &folder, "--log-file-name left", json);
    let twin = context(
        67,
        &folder,
        "--log-file-name left",
        LogFileOptions::default(),
    );
    let none = context(
        67,
        &folder,
        "--disable-external-lib-logs",
        LogFileOptions::default(),
    );
    for context in [&named, &twin, &none] {
        let node = context.create_node("arm").unwrap();
        pteros::info!(node.logger(), "a \"b\"");
    }
    let names = folder.names();
    let begin = format!("left_{}_", std::process::id());
    assert!(
        names.len() == 2 && names.iter().all(|name| name.starts_with(&begin)),
        "{names:?}"
    );
    let texts: Vec<_> = names.iter().map(|name| folder.read(name)).collect();
    let line = texts.iter().find(|text| text.starts_with('{')).unwrap();
    assert!(line.contains(r#""level":20,"severity":"INFO","name":"arm","msg":"a \"b\"","file":"#));
    assert!(line.ends_with("}\n"), "{line}");
}

#[test]
fn a_configuration_file_sets_what_the_program_leaves_unset() {
    let folder = Folder::absent("log-config");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join("config.yaml");
    fs::write(&path, "format: json\nfiles_max: 3\n").unwrap();
    let words = format!("--log-config-file {}", path.display());
    let context = context(68, &folder, &words, LogFileOptions::default());
    // Even without its node.
    let log = context.create_node("arm").unwrap().logger();
    pteros::info!(log, "hello");
    let name = folder
        .names()
        .into_iter()
        .find(|name| name.ends_with(".log"));
    assert!(folder.read(&name.unwrap()).starts_with('{'));
    fs::write(&path, "format: json\nfile_max: 3\n").unwrap();
    let words = format!("--ros-args {words}");
    let (arguments, _) = Arguments::parse(words.split_whitespace()).unwrap();
    let refused = Context::with_options(ContextOptions {
        arguments,
        ..ContextOptions::local(68)
    });
    let error = refused.unwrap_err().to_string();
    assert!(
        error.contains("config.yaml\", line 2: \"file_max\" is not a key"),
        "{error}"
    );
}

#[test]
fn a_full_file_is_closed_and_the_oldest_deleted() {
    let folder = Folder::absent("log-rotation");
    let small = LogFileOptions {
        file_bytes_max: Some(4_096),
        files_max: Some(3),
        ..LogFileOptions::default()
    };
    let context = context(69, &folder, "--log-file-name arm", small);
    let log = context.create_node("arm").unwrap();
    for number in 0..1_000 {
        pteros::info!(log.logger(), "message {number}");
    }
    let names = folder.names();
    let ends: Vec<_> = names
        .iter()
        .map(|name| name.split_once('.').unwrap().1)
        .collect();
    assert_eq!(ends, ["1.log", "2.log", "log"]);
    let texts: Vec<_> = names.iter().map(|name| folder.read(name)).collect();
    assert!(
        texts
            .iter()
            .all(|text| !text.is_empty() && text.len() <= 4_096)
    );
    // The last messages, in order, without a gap.
    let all = [&*texts[1], &texts[0], &texts[2]].concat();
    let count = all.lines().count();
    for (line, number) in all.lines().zip(1_000 - count..) {
        assert!(
            line.ends_with(&format!(": message {number}")),
            "{line} {number}"
        );
    }
    assert!(count > 100);
}

#[test]
fn a_full_disk_blocks_nothing_and_is_reported_once() {
    let folder = Folder::absent("log-refused");
    // A file in place of the folder.
    fs::write(&folder, "").unwrap();
    let context = context(
        70,
        &folder,
        "--log-file-name arm",
        LogFileOptions::default(),
    );
    let node = context.create_node("arm").unwrap();
    let hearer = context.create_node("hearer").unwrap();
    let qos = QosProfile::rosout().keep_last(100);
    let rosout = hearer
        .create_polled_subscription::<pteros::interfaces::rcl_interfaces::msg::Log>(
            "/rosout".qos(qos),
        )
        .unwrap();
    for number in 0..3 {
        pteros::info!(node.logger(), "lost {number}");
    }
    let heard: Vec<_> = std::iter::from_fn(|| rosout.take())
        .map(|log| log.msg.clone())
        .collect();
    assert_eq!(heard.len(), 4, "{heard:?}");
    assert!(
        heard[1].contains("log-refused") && heard[1].contains("ROS_LOG_DIR"),
        "{heard:?}"
    );
    fs::remove_file(&folder).unwrap();
    let mut more = 0;
    while folder.names().is_empty() {
        assert!(more < POLLS_MAX);
        pteros::info!(node.logger(), "later {more}");
        more += 1;
        node.spin_until(|| false, POLL_PERIOD);
    }
    let text = folder.read(&folder.names()[0]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    let lost = format!(
        "[WARN] [arm]: {} messages before this one are missing: they could not be written to this file",
        3 + more - 1
    );
    let told = lines[0].split_once(" [1").unwrap();
    let told = format!("{}{}", told.0, told.1.split_once(']').unwrap().1);
    assert!(told.starts_with(&lost), "{told} {lost}");
    assert!(lines[1].ends_with(&format!("later {}", more - 1)));
}
