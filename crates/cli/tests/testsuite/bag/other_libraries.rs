//! Bags and YAML beside libraries of others: the PyPI packages `mcap`,
//! `mcap-ros2-support`, `rosbags` and PyYAML. `cargo xtask peers` installs them, and
//! `PTEROS_PEERS` names the folder with `bag-python`; or `PTEROS_BAG_PYTHON` names a
//! Python that has them.

use super::*;

/// The Python with the libraries of others; without it, a sentence says so.
fn python_of_others() -> Option<std::ffi::OsString> {
    let peers = std::env::var_os("PTEROS_PEERS").map(PathBuf::from);
    let peer = peers.map(|folder| folder.join("bag-python").into_os_string());
    let peer = peer.filter(|program| Path::new(program).exists());
    let python = std::env::var_os("PTEROS_BAG_PYTHON").or(peer);
    if python.is_none() {
        eprintln!(
            "skipped: neither PTEROS_PEERS nor PTEROS_BAG_PYTHON leads to mcap-ros2-support, rosbags and PyYAML"
        );
    }
    python
}

/// Texts that some reader of YAML takes for something else, or that need quotes.
const AMBIGUOUS: &[&str] = &[
    "y",
    "N",
    "0483",
    "123E5",
    "1e3",
    "1e-7",
    "null",
    "~",
    "1_000",
    "0o7",
    "0x1F",
    "0b11",
    "12:30:45",
    "1:30",
    ".inf",
    "-.INF",
    "nan",
    ".NaN",
    "2024-01-02",
    "2024-01-02 03:04:05",
    "yes",
    "Off",
    "TRUE",
    "+1",
    "-0",
    ".5",
    "1.",
    "1.e5",
    "=",
    "<<",
    "",
    " ",
    "a ",
    "a: b",
    "a #b",
    "- a",
    "-",
    "?",
    "[a]",
    "{a}",
    "it's",
    "\"q\"",
    "a\nb",
    "a\\nb",
    "\tx",
    "%a",
    "@a",
    "`a`",
    "!t",
    "&a",
    "*a",
    "|",
    ">",
    "é",
    "\u{200b}",
    "\u{feff}x",
    "\u{e0041}",
    "\u{85}",
    "\u{2028}",
    "\u{1f600}",
    "\x1b[2J",
    "--- x",
    "...",
    "a,b",
    "true ",
    "0.1.2",
    "1e3.5",
    "٣",
];

/// Log of kinds: texts that look like something else in YAML. Readers of YAML 1.1 (PyYAML)
/// and 1.2 (ruamel.yaml) read what was written.
#[test]
fn yaml_is_read_as_the_same_values_by_other_libraries() {
    let Some(python) = python_of_others() else {
        return;
    };
    let folder = Folder::absent("bag-yaml");
    let options = BagOptions {
        custom_data: AMBIGUOUS
            .iter()
            .map(|text| ((*text).into(), (*text).into()))
            .collect(),
        ..BagOptions::default()
    };
    let mut writer = BagWriter::create(&folder, options).unwrap();
    let topic = |name: &str, kind: &str, definition: &str| BagTopic {
        name: name.into(),
        type_name: format!("std_msgs/msg/{kind}"),
        definition: definition.into(),
        serialization_format: "cdr".into(),
        ..BagTopic::default()
    };
    let text_topic = writer
        .add_topic(topic("/0483", "String", "string data\n"))
        .unwrap();
    let numbers = writer
        .add_topic(topic("/1e3", "Float64", "float64 data\n"))
        .unwrap();
    let mut time = 0;
    for text in AMBIGUOUS {
        let mut payload = vec![0, 1, 0, 0];
        payload.extend(u32::try_from(text.len() + 1).unwrap().to_le_bytes());
        payload.extend(text.as_bytes());
        payload.push(0);
        time += 1;
        writer.write(text_topic, time, time, &payload).unwrap();
    }
    let floats: [f64; 9] = [
        1e-7,
        1e16,
        0.1,
        -0.0,
        1e300,
        5e-324,
        f64::INFINITY,
        f64::NEG_INFINITY,
        100.0,
    ];
    for float in floats {
        time += 1;
        let payload = [&[0, 1, 0, 0][..], &float.to_le_bytes()].concat();
        writer.write(numbers, time, time, &payload).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    let printed = folder.join("printed.yaml");
    std::fs::write(&printed, bag("cat", &folder).ok()).unwrap();
    let values = serde_json::json!({
        "texts": AMBIGUOUS,
        "floats": floats.map(|float| format!("{:016x}", float.to_bits())),
    });
    let expected = folder.join("expected.json");
    std::fs::write(&expected, values.to_string()).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/yaml_libraries.py");
    let mut command = Command::new(&python);
    command.arg(script).arg(&folder);
    assert_contains(&finish(command).ok(), "all values are the same");
}

#[test]
fn bags_are_exchanged_with_other_libraries() {
    let Some(python) = python_of_others() else {
        return;
    };
    let domain = Domain::new();
    for compression in ["none", "lz4", "zstd"] {
        let ours = Folder::absent(&format!("bag-ours-{compression}"));
        let words =
            format!("-a --compression {compression} --exclude-topics /rosout /parameter_events");
        let recorder = record(&domain, &ours, &words);
        publish(&domain, "/numbers", 25);
        let mut recorder = recorder;
        recorder.signal("INT");
        assert_eq!(recorder.wait().code, Some(0));
        let theirs = Folder::absent(&format!("bag-theirs-{compression}"));
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bag_libraries.py");
        let mut command = Command::new(&python);
        command.arg(script).arg(&ours).arg(&theirs).arg(compression);
        let out = finish(command).ok();
        assert_contains(&out, "mcap: 25 messages, all 7");
        assert_contains(&out, "rosbags: 25 messages, all 7");
        let printed = bag("cat --json", &theirs).ok();
        assert_eq!(printed.lines().count(), 5, "{printed}");
        assert_contains(&printed, r#""message":{"data":"text 4"}"#);
        assert_eq!(bag("check", &theirs).ok(), "5 messages read, no problems\n");
    }
}
