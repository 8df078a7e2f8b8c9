//! `pteros-lab`: tiny runs through every layer, interrupted, continued and refused.
#![allow(clippy::disallowed_methods, reason = "waits for a real command")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{Answer, finish, pteros, start};
use pteros_test_support::folder::Folder;

/// A folder with a run of the lab.
trait RunFolder {
    fn out(&self) -> PathBuf;
    fn lab(&self, words: &str) -> Command;
    fn run(&self, words: &str) -> Answer;
}

impl RunFolder for Folder {
    fn out(&self) -> PathBuf {
        self.path().join("out")
    }

    /// `pteros-lab run WORDS --out FOLDER/out`, with the peers' programs in the
    /// folder too.
    fn lab(&self, words: &str) -> Command {
        let mut command = pteros();
        command.env("XDG_CACHE_HOME", self.path());
        command.args(["run"]).args(words.split(' '));
        command.arg("--out").arg(self.out());
        command
    }

    fn run(&self, words: &str) -> Answer {
        finish(self.lab(words))
    }
}

fn lines(path: &Path) -> usize {
    fs::read_to_string(path).map_or(0, |text| text.lines().count())
}

/// Length of the samples that the last complete line of a journal refers to.
fn samples_end(journal: &str) -> usize {
    let whole = journal.lines().rev();
    let entry = whole
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .next();
    let end = entry.and_then(|entry| entry["samples_end"].as_u64());
    end.expect("a line that says it") as usize
}

#[test]
fn every_experiment_runs_reports_and_is_continued() {
    let folder = Folder::new("smoke");
    let answer = folder.run("all own --smoke --peers none");
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    let out = folder.out();
    let listed = finish({
        let mut command = pteros();
        command.args(["list", "--json"]);
        command
    });
    let listed: serde_json::Value = serde_json::from_str(&listed.out).expect("JSON");
    for experiment in listed.as_array().expect("a list") {
        let id = experiment["id"].as_str().expect("an id");
        // Needs the Python wheel, which the test command does not unpack.
        if id == "own.python" {
            continue;
        }
        assert!(answer.out.contains(id), "{id} is not in {}", answer.out);
        let journal = out.join(id).join("measured.jsonl");
        assert!(lines(&journal) > 0, "{} is empty", journal.display());
    }
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    for outside in ["http://", "https://", "src=", "@import", "url("] {
        assert!(!page.contains(outside), "the report fetches {outside}");
    }
    let results = fs::read_to_string(out.join("results.json")).expect("results");
    let results: serde_json::Value = serde_json::from_str(&results).expect("JSON");
    // Measurements with two hosts need privileges that some machines do not grant.
    let configurations = results["experiments"][0]["configurations"].as_array();
    let local = configurations
        .into_iter()
        .flatten()
        .find(|entry| entry["case"]["situation"] == "local" && entry["case"]["qos"] == "reliable");
    let local = local.expect("a local, reliable configuration");
    assert_eq!(local["delivery"]["lost"], 0, "{local}");
    // As if killed during a repeat: its partial data is cut off, and finished data
    // is not measured again.
    let journal = out.join("m16.1/measured.jsonl");
    let samples = out.join("m16.1/samples.csv");
    let whole = lines(&journal);
    let text = fs::read_to_string(&journal).expect("a journal");
    let cut = text.trim_end().rfind('\n').expect("two lines") + 9;
    let kept = samples_end(&text[..cut]);
    let before = fs::read(&samples).expect("samples");
    fs::write(&journal, &text[..cut]).expect("written");
    let again = folder.run("m16.1 --smoke --peers none");
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    assert!(again.err.contains("resuming"), "{}", again.err);
    assert!(lines(&journal) >= whole, "{}", again.err);
    let after = fs::read(&samples).expect("samples");
    assert_eq!(after[..kept], before[..kept], "what was finished stays");
    let text = fs::read_to_string(&journal).expect("a journal");
    assert_eq!(after.len(), samples_end(&text), "the rest was cut off");
    // All data is complete and nothing changed.
    let compared = finish({
        let mut command = pteros();
        command.arg("compare").arg(&out).arg(&out);
        command
    });
    assert_eq!(compared.code, Some(0), "{}", compared.err);
    assert!(compared.out.contains("0 worse"), "{}", compared.out);
    // A run of another size does not continue this one.
    let full = folder.run("m16.1 --full --peers none");
    assert_eq!(full.code, Some(1));
    assert!(full.err.contains("holds a --smoke run"), "{}", full.err);
}

/// Needs a ROS 2, sourced or named by PTEROS_ROS2, and the plug-in beside the command.
#[test]
fn programs_of_ros2_run_over_each_middleware_that_is_found() {
    let found = pteros_peers::ros2::Installation::find();
    let plug_in =
        Path::new(env!("CARGO_BIN_EXE_pteros-lab")).with_file_name("librmw_pteros_cpp.so");
    let (Ok(Some(installation)), true) = (found, plug_in.is_file()) else {
        println!("skipped: no ROS 2 is sourced or named by PTEROS_ROS2, or no plug-in is built");
        return;
    };
    let folder = Folder::new("ros2");
    let mut command = folder.lab("own.ros2 --smoke");
    // The commands of tests start without the variables of a sourced ROS 2.
    command.envs(installation.environment().expect("the variables of ROS 2"));
    let answer = finish(command);
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    let journal = fs::read_to_string(folder.out().join("own.ros2/measured.jsonl"));
    let journal = journal.expect("a journal");
    let entries: Vec<serde_json::Value> = journal
        .lines()
        .map(|line| serde_json::from_str(line).expect("a whole line"))
        .collect();
    // Every kind of row, and every client library.
    for (row, implementation) in [
        ("two-64B-100Hz", "rclcpp/pteros"),
        ("events-two-64B-100Hz", "rclcpp/pteros"),
        ("py-two-64B-100Hz", "rclpy/pteros"),
        ("one-64B", "rclcpp/pteros"),
        ("goodput-1MB", "rclcpp/pteros"),
        ("nodes-1", "rclcpp/pteros"),
        ("meet-20", "rclcpp/pteros"),
    ] {
        let case = format!("\"{row}\"");
        let entry = entries.iter().find(|entry| {
            entry["case"].to_string().contains(&case) && entry["implementation"] == implementation
        });
        let entry = entry.unwrap_or_else(|| panic!("{row} {implementation} is not in {journal}"));
        assert!(entry["failure"].is_null(), "{entry}");
        // The middleware that was loaded, by its own name.
        if row.contains("two-") {
            assert_eq!(entry["path"], "rmw_pteros_cpp", "{entry}");
        }
    }
}

#[test]
fn ctrl_c_keeps_what_was_measured() {
    let folder = Folder::new("interrupted");
    let mut running = start(folder.lab("m16.1 --quick --peers none --repeats 9"));
    let journal = folder.out().join("m16.1/measured.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut report = pteros();
    report.arg("report").arg(folder.out());
    // Fails until a first repeat is written.
    while report.output().expect("it runs").status.code() != Some(0) {
        assert!(Instant::now() < deadline, "nothing measured in a minute");
    }
    running.signal("INT");
    let answer = running.wait();
    assert_eq!(answer.code, Some(130), "{}", answer.err);
    assert!(
        answer.err.contains("the same command continues the run"),
        "{}",
        answer.err
    );
    assert!(folder.out().join("report.html").exists());
    assert!(lines(&journal) > 0);
}

#[test]
fn a_killed_run_is_continued_and_nothing_counts_twice() {
    let folder = Folder::new("killed");
    let words = "m16.1 --smoke --peers none --repeats 2";
    let mut running = start(folder.lab(words));
    let journal = folder.out().join("m16.1/measured.jsonl");
    let deadline = Instant::now() + Duration::from_secs(60);
    let mut report = pteros();
    report.arg("report").arg(folder.out());
    while report.output().expect("it runs").status.code() != Some(0) {
        assert!(Instant::now() < deadline, "nothing measured in a minute");
    }
    running.signal("KILL");
    let answer = running.wait();
    assert_eq!(answer.code, None, "killed: {}", answer.err);
    let again = folder.run(words);
    assert_eq!(again.code, Some(0), "{}{}", again.out, again.err);
    let text = fs::read_to_string(&journal).expect("a journal");
    let keys: Vec<String> = text
        .lines()
        .map(|line| {
            let entry: serde_json::Value = serde_json::from_str(line).expect("a whole line");
            format!("{} {}", entry["case"], entry["repeat"])
        })
        .collect();
    let mut once = keys.clone();
    once.sort();
    once.dedup();
    assert_eq!(keys.len(), once.len(), "{text}");
    // Three cases, twice each. Two hosts need privileges that some machines do not
    // grant.
    let local = keys.iter().filter(|key| !key.contains("remote"));
    assert_eq!(local.count(), 6, "{text}");
    let after = fs::read(folder.out().join("m16.1/samples.csv")).expect("samples");
    assert_eq!(after.len(), samples_end(&text));
}

#[test]
fn two_concurrent_runs_do_not_receive_each_others_messages() {
    let folders = ["beside-a", "beside-b"].map(Folder::new);
    let runs: Vec<_> = folders
        .iter()
        .map(|folder| start(folder.lab("m16.1 --smoke --peers none")))
        .collect();
    for (mut running, folder) in runs.into_iter().zip(&folders) {
        let answer = running.wait();
        assert_eq!(answer.code, Some(0), "{}", answer.err);
        let text = fs::read_to_string(folder.out().join("m16.1/samples.csv")).expect("samples");
        let mut counts: std::collections::BTreeMap<&str, usize> = Default::default();
        for line in text.lines().skip(1) {
            let (case, _) = line.split_once(",pteros,").expect("samples of Pteros only");
            *counts.entry(case).or_default() += 1;
        }
        let most = counts.values().max();
        assert_eq!(
            most,
            Some(&3),
            "a message of the other run arrived, too: {counts:?}"
        );
    }
}

#[test]
fn an_unknown_word_gets_a_suggestion() {
    let folder = Folder::new("words");
    for (words, hint) in [
        ("m16.l", "did you mean m16.1"),
        ("m16.1 --peers ciclone", "did you mean cyclone"),
        ("m16.1 --repeats 0", "--repeats"),
        ("m16.1 --quick --full", "cannot be used with"),
    ] {
        let answer = folder.run(words);
        assert_ne!(answer.code, Some(0), "{words}");
        assert!(answer.err.contains(hint), "{words}: {}", answer.err);
    }
    assert!(!folder.out().exists(), "nothing begins before all is right");
}

#[test]
fn a_folder_that_is_not_writable_is_reported_at_the_start() {
    let folder = Folder::new("unwritable");
    fs::write(folder.out(), "a file").expect("written");
    let answer = folder.run("m16.1 --smoke --peers none");
    assert_eq!(answer.code, Some(1));
    let out = folder.out().to_string_lossy().into_owned();
    assert!(answer.err.contains(&out), "{}", answer.err);
    let mut report = pteros();
    report.arg("report").arg(folder.path());
    let report = finish(report);
    assert_eq!(report.code, Some(1));
    assert!(report.err.contains("no run of the lab"), "{}", report.err);
}

#[test]
fn a_peer_that_cannot_be_installed_is_skipped_and_the_rest_is_measured() {
    let folder = Folder::new("missing");
    let mut command = folder.lab("m16.1 --smoke --peers fastdds");
    // The build tools are not on PATH, except those that the lab itself runs.
    let tools = folder.path().join("tools");
    fs::create_dir_all(&tools).expect("a folder");
    for tool in ["unshare", "ip", "mount", "setpriv", "chrt", "date"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").expect("PATH"))
            .map(|folder| folder.join(tool))
            .find(|path| path.exists());
        if let Some(found) = found {
            std::os::unix::fs::symlink(found, tools.join(tool)).expect("a link");
        }
    }
    let answer = finish({
        command.env("PATH", &tools);
        command
    });
    assert_eq!(answer.code, Some(0), "{}{}", answer.out, answer.err);
    assert!(answer.err.contains("missing: fastdds"), "{}", answer.err);
    assert!(answer.out.contains("Missing: fastdds"), "{}", answer.out);
    assert!(answer.out.contains("apt-get install"), "{}", answer.out);
}
