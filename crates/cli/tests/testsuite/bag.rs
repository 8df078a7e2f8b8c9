//! `pteros bag`: records and plays between processes, and reads torn bags and those
//! of other libraries.
#![allow(
    clippy::disallowed_methods,
    reason = "finds the Python whose libraries read our bags"
)]

mod other_libraries;

use pteros_test_support::folder::Folder;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Answer, Domain, Running, assert_contains, finish, pteros, start};
use pteros::interfaces::std_msgs::msg::UInt8MultiArray;
use pteros::prelude::*;
use pteros_bag::{BagOptions, BagTopic, BagWriter};

fn bag(words: &str, folder: &Path) -> Answer {
    let mut command = pteros();
    command
        .arg("bag")
        .args(words.split_whitespace())
        .arg(folder);
    finish(command)
}

/// Starts a recorder of `words` into the folder.
fn record(domain: &Domain, folder: &Path, words: &str) -> Running {
    let mut command = domain.command(["bag", "record", "-o"]);
    command.arg(folder).args(words.split_whitespace());
    let mut recorder = start(command);
    wait_until_it_records(&mut recorder);
    recorder
}

/// Topics whose publishers start later have a warning each before that line.
fn wait_until_it_records(recorder: &mut Running) {
    let mut line = recorder.error_line();
    while line.contains("does not appear to be published yet") {
        line = recorder.error_line();
    }
    assert_contains(&line, "Recording to ");
}

/// Publishes `count` messages to a matched subscription.
fn publish(domain: &Domain, topic: &str, count: u32) {
    let words = format!("topic pub {topic} std_msgs/msg/Int32 --times {count} -r 500 -w 1");
    let words: Vec<&str> = words.split(' ').chain(["data: 7"]).collect();
    finish(domain.command(words)).ok();
}

#[test]
fn a_recorded_topic_is_shown_printed_and_played() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-round");
    let mut recorder = record(&domain, &folder, "/numbers");
    publish(&domain, "/numbers", 25);
    assert_contains(&recorder.error_line(), "Subscribed to topic '/numbers'");
    recorder.signal("INT");
    let answer = recorder.wait();
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    assert_contains(&answer.out, "/numbers: 25 messages written\n");
    assert_contains(&answer.out, "25 messages, 0 lost");

    let shown = bag("info", &folder).ok();
    assert_contains(&shown, "Files:             bag-round_0.mcap\n");
    assert_contains(&shown, "Messages:          25\n");
    let line = "Topic: /numbers | Type: std_msgs/msg/Int32 | Count: 25 | Serialization Format: cdr";
    assert_contains(&shown, line);
    assert_contains(&shown, "Lost messages:     0\n");
    let known = bag("info --json", &folder).json();
    assert_eq!(known["topics"][0]["lost"]["wire"], 0);
    assert_eq!(known["complete"], true);
    assert_eq!(
        bag("topics", &folder).ok(),
        "/numbers [std_msgs/msg/Int32] 25\n"
    );
    let printed = bag("cat --json -n 2", &folder).ok();
    assert_eq!(printed.lines().count(), 2);
    assert_contains(&printed, r#""message":{"data":7}"#);
    assert_eq!(
        bag("check", &folder).ok(),
        "25 messages read, no problems\n"
    );

    let mut echo = domain.start(
        "topic echo /anumber std_msgs/msg/Int32 --csv --qos-reliability reliable --qos-depth 100",
    );
    let words = "bag play -r 10 --progress-bar-update-rate -1 --playback-duration -1 --playback-until-sec -1 --wait-for-matched 20 --wait-for-all-acked 5000 -s mcap --topic-remap /(num.*)s:=/a$1 /(.*)mbers:=again --qos-profile-overrides-path";
    // Ten times as fast, more messages wait than the recorded depth keeps.
    let all = folder.with_extension("yaml");
    std::fs::write(&all, "/numbers: {reliability: reliable, history: keep_all}").unwrap();
    let mut command = domain.command(words.split(' '));
    command.arg(&all).arg("--");
    command.arg(&folder);
    let played = finish(command);
    assert_contains(&played.err, "] Duration 0.0");
    assert_contains(&played.ok(), "25 messages published");
    for _ in 0..25 {
        assert_eq!(echo.line(), "7");
    }
    let refused = bag("info -s sqlite3", &folder).failed(1);
    assert_contains(&refused, "--storage sqlite3: the bag is mcap");
    let error = {
        let mut command = domain.command(["bag", "record", "/numbers", "-o"]);
        command.arg(&folder);
        finish(command).failed(1)
    };
    assert_contains(&error, "exists already, and bags are never overwritten");
}

/// The recorder is killed: what was older than a second is there.
#[test]
fn a_killed_recorder_leaves_a_readable_bag() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-killed");
    let recorder = record(&domain, &folder, "/numbers");
    publish(&domain, "/numbers", 10);
    // A bag that is being recorded is read as far as it goes.
    let has_messages = |_| bag("info --json", &folder).json()["messages"] != 0;
    assert!((0..2000).any(has_messages), "nothing is flushed");
    recorder.signal("KILL");
    drop(recorder);
    let known = bag("info --json", &folder).json();
    assert_eq!(known["complete"], false);
    let count = known["messages"].as_u64().unwrap();
    assert!((1..=10).contains(&count), "{known}");
    bag("check", &folder).failed(1);
    let new = Folder::absent("bag-killed-new");
    let mut command = pteros();
    command
        .args(["bag", "recover"])
        .arg(&folder)
        .arg("-o")
        .arg(&new);
    assert_contains(&finish(command).ok(), &format!("{count} messages"));
    assert_eq!(
        bag("check", &new).ok(),
        format!("{count} messages read, no problems\n")
    );
    assert_contains(&bag("reindex", &folder).ok(), "metadata.yaml written");
    let shown = std::fs::read_to_string(folder.join("metadata.yaml")).unwrap();
    assert_contains(&shown, &format!("message_count: {count}\n"));
}

fn fixture(name: &str) -> PathBuf {
    let bags = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bag/tests/fixtures");
    bags.join(name)
}

/// Runs `bag WORDS INPUT -o OUTPUT`.
fn copy(words: &str, input: &Path, output: &Path) -> Answer {
    let mut command = pteros();
    command
        .arg("bag")
        .args(words.split_whitespace())
        .arg(input)
        .arg("-o")
        .arg(output);
    finish(command)
}

#[test]
fn bags_of_sqlite3_and_ros_1_are_shown_printed_checked_and_converted() {
    let shown = bag("info", &fixture("version4.db3")).ok();
    assert_contains(&shown, "Storage id:        sqlite3\n");
    assert_contains(&shown, "ROS Distro:        humble\n");
    assert_contains(
        &shown,
        "Topic: /even | Type: std_msgs/msg/String | Count: 100 |",
    );
    let shown = bag("info", &fixture("lz4.bag")).ok();
    assert_contains(&shown, "Storage id:        rosbag1\n");
    let printed = bag("cat --topics /own -n 1", &fixture("bz2.bag")).ok();
    assert_contains(&printed, "position:\n- 1.5\n");
    assert_contains(
        &bag("topics", &fixture("plain.bag")).ok(),
        "/scan [sensor_msgs/msg/LaserScan] 4\n",
    );
    for (name, count) in [("version1.db3", 30), ("killed.db3", 20), ("lz4.bag", 29)] {
        let text = format!("{count} messages read, no problems\n");
        assert_eq!(bag("check", &fixture(name)).ok(), text, "{name}");
        let new = Folder::absent(&format!("bag-converted-{name}"));
        let out = copy("convert -i", &fixture(name), &new).ok();
        assert_contains(&out, &format!(": {count} messages\n"));
        assert_eq!(bag("check", &new).ok(), text, "{name}");
    }
}

/// Log of kinds: what the command says of names, dates and paths from outside.
#[test]
fn names_dates_and_paths_are_shown_as_they_are() {
    use std::os::unix::ffi::OsStrExt;
    let outside = Folder::new("bag-outside");
    let folder = outside.join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    let mut writer = BagWriter::create(&folder, BagOptions::default()).unwrap();
    for (number, name) in (1u16..).zip(["/a\nb", "/zero\u{200b}width", "/tag\u{e0041}"]) {
        let topic = BagTopic {
            name: name.into(),
            type_name: "std_msgs/msg/String\u{feff}\x1b[2J".into(),
            definition: "string data\n".into(),
            serialization_format: "cdr".into(),
            ..BagTopic::default()
        };
        let channel = writer.add_topic(topic).unwrap();
        let time = 1_709_210_096_000_000_000 + u64::from(number);
        writer.write(channel, time, time, &[0, 1, 0, 0]).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
    assert_eq!(
        bag("topics", &folder).ok(),
        "/a\\nb [std_msgs/msg/String\\u{feff}\\x1b[2J] 1\n/zero\\u{200b}width [std_msgs/msg/String\\u{feff}\\x1b[2J] 1\n/tag\\u{e0041} [std_msgs/msg/String\\u{feff}\\x1b[2J] 1\n"
    );
    let mut command = pteros();
    command.env("TZ", "CET-1CEST,M3.5.0,M10.5.0/3");
    command.args(["bag", "info"]).arg(&folder);
    let shown = finish(command).ok();
    assert_contains(
        &shown,
        "Start:             Feb 29 2024 13:34:56.000000001 (1709210096.000000001)\n",
    );
    assert_contains(
        &shown,
        "Topic: /a\\nb | Type: std_msgs/msg/String\\u{feff}\\x1b[2J | ",
    );
    for answer in [
        shown,
        bag("cat", &folder).ok(),
        bag("info --json", &folder).ok(),
    ] {
        let is_raw = |c: char| "\u{200b}\u{feff}\u{e0041}\x1b".contains(c);
        assert!(!answer.contains(is_raw), "{answer:?}");
    }
    let launch = folder.join(std::ffi::OsStr::from_bytes(b"l\xe9.launch.xml"));
    std::fs::write(&launch, "<launch/>").unwrap();
    let mut command = pteros();
    command.args(["launch", "--show-args"]).arg(&launch);
    finish(command).ok();
}

/// Log of kinds: what a copy says. A whole file without an index is no failure; a cut one
/// is, with its reason.
#[test]
fn a_failed_copy_says_why_and_a_whole_one_does_not_fail() {
    let folder = Folder::absent("bag-why");
    std::fs::create_dir_all(&folder).unwrap();
    let whole = folder.join("whole.mcap");
    // Header, channel without schema, a message, end of data, footer without a summary.
    let mut file = b"\x89MCAP0\r\n".to_vec();
    let mut put = |op: u8, content: &[u8]| {
        file.push(op);
        file.extend((content.len() as u64).to_le_bytes());
        file.extend(content);
    };
    put(1, &[0; 8]);
    put(
        3,
        b"\x01\0\x13\0\0\0std_msgs/msg/String\x07\0\0\0ros2msg\x0b\0\0\0string data",
    );
    put(4, b"\x01\0\x01\0\x02\0\0\0/a\x03\0\0\0cdr\0\0\0\0");
    put(
        5,
        b"\x01\0\0\0\0\0\x05\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\x01\0\0\x02\0\0\0b\0",
    );
    put(0x0f, &[0; 4]);
    put(2, &[0; 20]);
    file.extend(b"\x89MCAP0\r\n");
    std::fs::write(&whole, &file).unwrap();
    assert_eq!(bag("check", &whole).ok(), "1 messages read, no problems\n");
    assert_contains(
        &copy("convert -i", &whole, &folder.join("new")).ok(),
        "1 messages",
    );
    let bags = std::fs::read(fixture("plain.bag")).unwrap();
    for length in [bags.len() - 1, bags.len() - 400, 8000] {
        let cut = folder.join("cut.bag");
        std::fs::write(&cut, &bags[..length]).unwrap();
        let answer = bag("check", &cut);
        assert_eq!(answer.code, Some(1), "{length}: {}", answer.out);
        assert_contains(&answer.out, "the file ends");
        let new = folder.join(format!("cut-{length}"));
        let answer = copy("convert -i", &cut, &new);
        assert_eq!(answer.code, Some(1), "{}", answer.out);
        assert_contains(&answer.err, "WARNING: ");
        let recovered = folder.join(format!("recovered-{length}"));
        assert!(
            !copy("recover", &cut, &recovered)
                .ok()
                .contains(": 0 messages"),
            "{length}"
        );
    }
}

#[test]
fn bags_are_filtered_split_and_merged() {
    let source = fixture("version4.db3");
    let part = Folder::absent("bag-filtered");
    let known = copy(
        "filter --json --topics even --end-time-ns 1700000000000020000",
        &source,
        &part,
    );
    assert_eq!(known.json()["messages"], 11);
    assert_eq!(
        bag("topics", &part).ok(),
        "/even [std_msgs/msg/String] 11\n"
    );
    let error = copy("split", &source, &Folder::absent("bag-split-how")).failed(1);
    assert_contains(
        &error,
        "give --max-bag-size BYTES or --max-bag-duration SECONDS",
    );
    let pieces = Folder::absent("bag-split");
    copy("split -b 8000 --compression-mode file", &source, &pieces).ok();
    let known = bag("info --json", &pieces).json();
    assert!(known["files"].as_array().unwrap().len() > 2, "{known}");
    assert!(
        known["files"][0]
            .as_str()
            .unwrap()
            .ends_with("split_0.mcap.zstd")
    );
    let both = Folder::absent("bag-merged");
    let mut command = pteros();
    command
        .args(["bag", "merge"])
        .arg(&part)
        .arg(fixture("plain.bag"));
    command.arg("--output").arg(&both);
    assert_contains(&finish(command).ok(), ": 40 messages\n");
    assert_eq!(bag("check", &both).ok(), "40 messages read, no problems\n");
    let error = copy("merge", &part, &both).failed(1);
    assert_contains(&error, "exists already, and bags are never overwritten");
    // Nothing was read of half a database.
    let broken = Folder::absent("bag-broken");
    std::fs::create_dir_all(&broken).unwrap();
    let half = broken.join("half.db3");
    let whole = std::fs::read(&source).unwrap();
    std::fs::write(&half, &whole[..whole.len() / 2]).unwrap();
    let error = copy("filter", &half, &Folder::absent("bag-half")).failed(1);
    assert_contains(&error, "half.db3");
}

#[test]
fn convert_writes_the_bags_of_an_output_file() {
    let work = Folder::absent("bag-outputs");
    std::fs::create_dir_all(&work).unwrap();
    let file = work.join("outputs.yaml");
    let text = "output_bags:\n- uri: even\n  topics: [/even]\n  compression: lz4\n- uri: rest\n  all: true\n  exclude_topics: [/even]\n- uri: nothing\n";
    std::fs::write(&file, text).unwrap();
    let run = || {
        let mut command = pteros();
        command.current_dir(&work);
        command
            .args(["bag", "convert", "-i"])
            .arg(fixture("version4.db3"));
        command.args(["sqlite3", "-i"]).arg(fixture("plain.bag"));
        command.args(["-o", "outputs.yaml"]);
        finish(command)
    };
    let out = run().ok();
    assert_eq!(
        out,
        "even: 100 messages\nrest: 129 messages\nnothing: 0 messages\n"
    );
    assert_contains(&bag("info", &work.join("rest")).ok(), "Topic: /scan |");
    assert_contains(&run().failed(1), "even exists already");
    std::fs::write(&file, text.replace("lz4", "gzip")).unwrap();
    let error = run().failed(1);
    assert_contains(
        &error,
        "outputs.yaml: line 4: compression \"gzip\" is unknown",
    );
}

#[test]
fn topics_are_sorted_as_ros2_bag_sorts_them() {
    let source = fixture("version4.db3");
    let part = Folder::absent("bag-sorted");
    copy("filter --end-time-ns 1700000000000020000", &source, &part).ok();
    let order = |words: &str| {
        let shown = bag(words, &part).ok();
        let lines = shown.lines().filter_map(|line| line.split_once("Topic: "));
        let names = lines.map(|(_, rest)| rest.split(' ').next().unwrap().to_owned());
        names.collect::<Vec<String>>()
    };
    let counts = bag("info --json --sort count", &part).json();
    let counts = counts["topics"].as_array().unwrap().iter();
    let counts: Vec<u64> = counts.map(|t| t["count"].as_u64().unwrap()).collect();
    assert!(counts.len() > 1 && counts.is_sorted(), "{counts:?}");
    assert!(order("info").is_sorted());
    assert_eq!(order("info"), order("info --sort name"));
    let named = bag("info -t", &part).ok();
    assert!(named.lines().is_sorted(), "{named}");
    let both = bag("info -t -v", &part);
    assert_contains(&both.err, "-t has no effect with -v");
    assert_contains(&both.out, "Files:");
}

/// The bag has a problem of its own, which is told first.
#[test]
fn a_failed_playback_tells_its_reason_behind_the_bags_problems() {
    let domain = Domain::new();
    let torn = Folder::absent("bag-unindexed");
    copy("convert -i", &fixture("version4.db3"), &torn).ok();
    std::fs::remove_file(torn.join("metadata.yaml")).unwrap();
    let words = "bag play --step-with /nobody --step-timeout 0.1 --";
    let mut command = domain.command(words.split(' '));
    command.arg(&torn);
    let error = finish(command).failed(1);
    assert_contains(&error, "pteros bag reindex");
    assert_contains(&error, "--step-with /nobody: no such node");
    assert_eq!(error.matches("pteros bag reindex").count(), 1, "{error}");
}

#[test]
fn a_topic_that_is_not_there_is_named_and_an_empty_bag_says_so() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-empty");
    let mut command = domain.command(["bag", "record", "/absent", "-o"]);
    command.arg(&folder);
    let mut recorder = start(command);
    assert_contains(
        &recorder.error_line(),
        "WARNING: topic [/absent] does not appear to be published yet",
    );
    assert_contains(&recorder.error_line(), "Recording to ");
    recorder.signal("INT");
    assert_eq!(recorder.wait().code, Some(0));
    let mut command = domain.command(["bag", "play"]);
    command.arg(&folder);
    let error = finish(command).failed(1);
    assert_contains(&error, "nothing to play: the bag has no topics");
}

/// Log of kinds: a misspelt name ends a recording or a copy at once.
#[test]
fn misspelt_names_record_and_copy_nothing() {
    let domain = Domain::new();
    let folder = Folder::new("misspelt-names");
    let _talker = domain.start("demo talker");
    domain.run_until("param list /talker", |answer| answer.code == Some(0));
    for (words, says) in [
        (
            "--services /talker/set_parameter",
            "unknown service '/talker/set_parameter'; did you mean /talker/set_parameters?",
        ),
        (
            "--topic-types std_msgs/msg/Strin",
            "unknown type 'std_msgs/msg/Strin'; did you mean std_msgs/msg/String?",
        ),
        (
            "--topics /rosuot /parameter_event",
            "unknown topic '/rosuot'",
        ),
    ] {
        // A recorder that ends discovery before it has heard of all names records.
        let is_refused = (0..20).any(|attempt| {
            let bag = folder.path().join(attempt.to_string());
            let mut recorder =
                domain.start_with(&format!("bag record {words} -o"), bag.to_str().unwrap());
            let line = recorder.error_line();
            line.contains(says) && recorder.wait().code == Some(1)
        });
        assert!(is_refused, "{says}");
    }
    for verb in ["cat", "convert -o absent-bag -i", "filter -o absent-bag"] {
        let mut command = domain.command(format!("bag {verb}").split(' '));
        command.arg(fixture("plain.bag")).args(["--topics", "/tex"]);
        assert_contains(
            &finish(command).failed(1),
            "no topic is chosen; the bag has: /",
        );
    }
}

#[test]
fn formats_are_listed() {
    assert_eq!(
        crate::support::run("bag list storage").ok(),
        "mcap\nsqlite3\nrosbag1\n"
    );
    assert_contains(
        &crate::support::run("bag list compressor -v").ok(),
        "name: zstd\n\twhole files",
    );
    assert_eq!(
        crate::support::run("bag list converter --json").json()[0]["name"],
        "cdr"
    );
}

#[test]
fn a_bag_of_ros_1_is_played_and_burst() {
    let domain = Domain::new();
    for verb in ["play", "burst -n 11"] {
        let mut echo = domain
            .start("topic echo /scan sensor_msgs/msg/LaserScan --field header.stamp.sec --once");
        let words = format!("bag {verb} --topics /scan /text --wait-for-matched 3 --");
        let mut command = domain.command(words.split(' '));
        command.arg(fixture("bz2.bag"));
        let out = finish(command).ok();
        let count = if verb == "play" { 24 } else { 11 };
        assert_contains(&out, &format!("{count} messages published"));
        assert_eq!(echo.line(), "5\n".trim_end());
    }
}

/// A bag of several topics with numbers, in turns.
fn numbers_of(topics: &[&str], folder: &Path, rounds: u32) {
    let mut writer = BagWriter::create(folder, BagOptions::default()).unwrap();
    let add = |topic: &&str| BagTopic {
        name: (*topic).to_owned(),
        type_name: "std_msgs/msg/Int32".into(),
        definition: "int32 data\n".into(),
        serialization_format: "cdr".into(),
        ..BagTopic::default()
    };
    let channels: Vec<u16> = topics
        .iter()
        .map(|topic| writer.add_topic(add(topic)).unwrap())
        .collect();
    for (time, channel) in (1..).zip(channels.repeat(rounds as usize)) {
        let number = [0, 1, 0, 0, 7, 0, 0, 0];
        writer.write(channel, time, time, &number).unwrap();
    }
    writer.finish(&Default::default()).unwrap();
}

/// Subscribers of several topics are stopped. The limit is for all of them together.
#[test]
fn the_wait_for_acknowledgements_is_one_limit_for_all_topics() {
    const LIMIT: Duration = Duration::from_secs(2);
    let domain = Domain::new();
    let folder = Folder::absent("bag-acked");
    let topics = ["/a", "/b", "/c", "/d"];
    numbers_of(&topics, &folder, 3);
    let mut echoes = topics.map(|topic| {
        let words = "std_msgs/msg/Int32 --csv --qos-reliability reliable";
        domain.start(&format!("topic echo {topic} {words}"))
    });
    let words = "bag play --start-paused --wait-for-matched 60 --wait-for-all-acked 2000";
    let mut command = domain.command(words.split(' '));
    command.arg(&folder);
    let mut player = start(command);
    let call = |words: &str| {
        domain
            .run(&format!("service call /rosbag2_player/{words}"))
            .ok()
    };
    for echo in &mut echoes {
        let answer = call("play_next rosbag2_interfaces/srv/PlayNext");
        assert_contains(&answer, "success=True");
        assert_eq!(echo.line(), "7");
    }
    echoes.iter_mut().for_each(|echo| echo.signal("STOP"));
    call("resume rosbag2_interfaces/srv/Resume");
    let begin = Instant::now();
    let answer = player.wait();
    let took = begin.elapsed();
    echoes.iter_mut().for_each(|echo| echo.signal("CONT"));
    assert_contains(&answer.out, "12 messages published");
    assert!((LIMIT / 2..2 * LIMIT).contains(&took), "{took:?}");
}

#[test]
fn messages_of_a_pause_are_told() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-paused");
    let mut recorder = record(&domain, &folder, "/numbers --start-paused");
    publish(&domain, "/numbers", 5);
    recorder.signal("INT");
    let answer = recorder.wait();
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    let line = "/numbers: 0 messages written, 5 while paused\n";
    assert_contains(&answer.out, line);
}

/// Scripts for `ros2 bag` give these, and lose nothing by it.
#[test]
fn options_without_effect_are_accepted() {
    let domain = Domain::new();
    let config = Folder::absent("bag-config.yaml");
    std::fs::write(&config, "{}").unwrap();
    for words in ["play --disable-loan-message", "burst -n 1"] {
        let words = format!("bag {words} --topics /text --storage-config-file");
        let mut command = domain.command(words.split(' '));
        command.arg(&config).arg("--").arg(fixture("plain.bag"));
        assert_contains(&finish(command).ok(), " messages published");
    }
    let refused = bag("reindex -s sqlite3", &fixture("plain.bag")).failed(1);
    assert_contains(&refused, "--storage sqlite3: the bag is rosbag1");
}

#[test]
fn a_snapshot_is_written_when_it_is_asked_for() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-snapshot");
    let mut recorder = record(&domain, &folder, "/numbers --snapshot-mode");
    publish(&domain, "/numbers", 10);
    let call = "service call /rosbag2_recorder/snapshot rosbag2_interfaces/srv/Snapshot";
    assert_contains(&domain.run(call).ok(), "success=True");
    publish(&domain, "/numbers", 5);
    recorder.signal("INT");
    let answer = recorder.wait();
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    assert_contains(
        &answer.out,
        "/numbers: 10 messages written, 5 not kept for a snapshot",
    );
    assert_eq!(
        bag("check", &folder).ok(),
        "10 messages read, no problems\n"
    );
}

/// `script` gives the command a terminal, and passes on what is written to it.
#[test]
fn the_space_bar_pauses_and_arrows_step_and_change_the_rate() {
    let domain = Domain::new();
    let player = domain.command(["bag", "play", "--start-paused", "-r", "0.000000001"]);
    let words = std::iter::once(player.get_program()).chain(player.get_args());
    let words = words.map(|word| word.to_str().unwrap());
    let words: Vec<&str> = words.collect();
    let bag = fixture("plain.bag");
    let line = format!("exec {} {}", words.join(" "), bag.display());
    let mut command = Command::new("script");
    command.args(["-qec", &line, "/dev/null"]);
    command.envs(
        player
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let mut player = crate::support::start_with_input(command, Stdio::piped());
    assert_contains(&player.line(), "SPACE pauses and resumes");
    for (key, shown) in [
        ("\x1b[C", "Next message"),
        (" ", "Resumed"),
        ("\x1b[C", "press SPACE first"),
        (" ", "Paused"),
        ("\x1b[A", "Rate 0.1"),
        // Ctrl-C
        ("\x03", "1 messages published"),
    ] {
        player.write(key);
        let line = player.line();
        assert_contains(&line, shown);
    }
    assert_eq!(player.wait().code, Some(0));
}

/// Messages are lost on the way while the recorder stands still, and before a slow
/// writer. The accounts add up to what was published.
#[test]
fn lost_messages_add_up_to_the_publishers_numbers() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-lossy");
    // Nearly no buffer before a writer that compresses.
    let words =
        "/lossy /burst --max-cache-size 1 --compression zstd --ros-args --shared-memory off";
    let mut recorder = record(&domain, &folder, words);
    let mut options = ContextOptions::local(domain.id());
    options.shared_memory.enabled = false;
    let context = Context::with_options(options).unwrap();
    let node = context.create_node("publisher").unwrap();
    let lossy = QosProfile::default().keep_last(1).best_effort();
    let lossy = node
        .create_publisher::<UInt8MultiArray>("/lossy".qos(lossy))
        .unwrap();
    let burst = node
        .create_publisher::<UInt8MultiArray>("/burst".keep_last(10_000))
        .unwrap();
    for publisher in [&lossy, &burst] {
        assert!(publisher.wait_for_matched(1, Duration::from_secs(60)));
    }
    for _ in 0..2 {
        assert_contains(&recorder.error_line(), "Subscribed to topic");
    }
    let mut state = 1u32;
    let message = |state: &mut u32| {
        let data = (0..8000).map(|_| {
            *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (*state >> 24) as u8
        });
        UInt8MultiArray {
            data: data.collect(),
            ..UInt8MultiArray::default()
        }
    };
    // The first is there before the recorder stands still: it counts from it.
    let small = UInt8MultiArray::default();
    lossy.publish(&small).unwrap();
    burst.publish(&small).unwrap();
    let has_both = |_| {
        let known = bag("info --json", &folder).json();
        known["topics"]
            .as_array()
            .is_some_and(|topics| topics.len() == 2)
    };
    assert!((0..2000).any(has_both), "the first messages are not there");
    recorder.signal("STOP");
    for _ in 0..3000 {
        lossy.publish(&message(&mut state)).unwrap();
    }
    recorder.signal("CONT");
    for _ in 0..2000 {
        burst.publish(&message(&mut state)).unwrap();
    }
    assert!(burst.wait_for_all_acked(Duration::from_secs(60)));
    // The last one is not lost: it is small, and nothing else is on the way.
    let mut tail = 0;
    let written = |topic: &str| {
        let known = bag("info --json", &folder).json();
        let topics = known["topics"].as_array().unwrap().clone();
        let found = topics.into_iter().find(|t| t["name"] == topic).unwrap();
        found["count"].as_u64().unwrap()
    };
    let before = written("/lossy");
    while written("/lossy") <= before && tail < 1000 {
        lossy.publish(&small).unwrap();
        tail += 1;
    }
    recorder.signal("INT");
    let answer = recorder.wait();
    let known = bag("info --json", &folder).json();
    let texts = &known["custom_data"];
    let mut lost = 0;
    for (topic, published) in [("/lossy", 3001 + tail), ("/burst", 2001)] {
        let text = texts[format!("pteros_loss:{topic}")].as_str().unwrap();
        let count = |name: &str| -> u64 {
            let parts = text.split(' ').filter_map(|part| part.split_once('='));
            let value = parts.clone().find(|(key, _)| *key == name).unwrap().1;
            value.parse().unwrap()
        };
        assert_eq!(
            count("received") + count("wire") + count("queue"),
            published,
            "{topic}: {text}"
        );
        assert_eq!(
            count("received"),
            count("written") + count("buffer") + count("writer"),
            "{topic}: {text}"
        );
        assert_eq!(written(topic), count("written"), "{topic}: {text}");
        lost += published - count("written");
        if topic == "/lossy" {
            assert!(count("wire") > 0, "{text}");
        }
    }
    assert_eq!(answer.code, Some(1), "{}{}", answer.out, answer.err);
    assert_contains(&answer.out, &format!(" messages, {lost} lost\n"));
    assert_eq!(bag("check", &folder).code, Some(0));
}

/// The file system refuses more bytes: what was written stays readable, the rest is
/// counted, and the exit code says so.
#[test]
fn a_full_disk_ends_the_recording_with_what_fits() {
    let domain = Domain::new();
    let folder = Folder::absent("bag-full");
    let recorder = domain.command(["bag", "record", "/data", "-o"]);
    let mut command = Command::new("sh");
    // A limit of 400 blocks of 512 bytes for each file.
    command.args(["-c", "ulimit -f 400; exec \"$@\"", "sh"]);
    command
        .arg(recorder.get_program())
        .args(recorder.get_args())
        .arg(&folder);
    // The limit holds for shared memory too.
    command.args(["--ros-args", "--shared-memory", "off"]);
    command.envs(
        recorder
            .get_envs()
            .filter_map(|(key, value)| Some((key, value?))),
    );
    let mut recorder = start(command);
    wait_until_it_records(&mut recorder);
    let context = Context::with_options(ContextOptions::local(domain.id())).unwrap();
    let node = context.create_node("publisher").unwrap();
    let data = node
        .create_publisher::<UInt8MultiArray>("/data".keep_last(1000))
        .unwrap();
    assert!(data.wait_for_matched(1, Duration::from_secs(60)));
    let message = UInt8MultiArray {
        data: vec![7; 30_000],
        ..UInt8MultiArray::default()
    };
    // A first part that fits, and then more than fits.
    data.publish(&message).unwrap();
    let has_one = |_| {
        let mut command = pteros();
        command.args(["bag", "info", "--json"]).arg(&folder);
        finish(command).json()["messages"] == 1
    };
    assert!((0..2000).any(has_one), "nothing is flushed");
    for _ in 0..100 {
        data.publish(&message).unwrap();
    }
    let answer = recorder.wait();
    assert_eq!(answer.code, Some(1), "{}{}", answer.out, answer.err);
    assert_contains(&answer.err, "recording ends");
    assert_contains(&answer.out, " in the writer)");
    // The last line has what the topic's line has.
    let written = answer.out.split_once("/data: ").unwrap().1;
    let written = written.split_once(" messages written").unwrap().0;
    assert_contains(&answer.out, &format!("bag-full: {written} messages, "));
    let known = bag("info --json", &folder).json();
    assert_eq!(known["complete"], false);
    assert!(known["messages"].as_u64().unwrap() >= 1, "{known}");
    let new = Folder::absent("bag-full-recovered");
    copy("recover", &folder, &new).ok();
    bag("check", &new).ok();
}
