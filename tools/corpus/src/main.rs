//! Corpus test: reads the launch files, parameter files and interface definitions of
//! checked-out repositories with the libraries of Pteros, and counts them by
//! outcome and reason.
//!
//! It starts no program of a repository and writes nothing into it. Packages are found
//! as if they were installed ([`installation`]).
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "runs on a real machine")]

mod installation;
mod interfaces;
mod launch_files;
mod outcome;
mod parameter_files;
mod parser_outcomes;
mod report;
mod repository;
mod upstream;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use installation::Installation;
use outcome::{CheckedFile, Outcome};
use parser_outcomes::ParserOutcomes;
use report::Report;
use repository::Repository;

/// Reads the launch files, parameter files and interface definitions of checked-out
/// repositories, and counts which are refused and why.
#[derive(clap::Parser)]
#[command(bin_name = "cargo xtask corpus")]
struct Options {
    /// Print totals, reasons and every file as JSON
    #[arg(long)]
    json: bool,
    /// Print every file that is refused, with its first fault
    #[arg(long)]
    refused: bool,
    /// Write the totals of repositories and reasons as a page
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Compare with outcomes of ROS 2's own parsers: lines of accepted or refused, a tab,
    /// and a path
    #[arg(long, value_name = "FILE")]
    outcomes: Option<PathBuf>,
    /// Checked-out repositories; several are read together, so that they find each
    /// other's packages and types
    #[arg(required = true, value_name = "DIR")]
    folders: Vec<PathBuf>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::from(2)
        }
    }
}

/// Whether no file is refused that ROS 2 accepts.
fn run() -> Result<bool> {
    let options = Options::parse();
    let repositories = options
        .folders
        .iter()
        .map(|folder| Repository::read(folder))
        .collect::<Result<Vec<_>>>()?;
    let outcomes = options.outcomes.as_deref().map(ParserOutcomes::read);
    let outcomes = outcomes.transpose()?.unwrap_or_default();
    let files = check(&repositories)?;
    let report = Report::new(&repositories, &files, &outcomes);
    if let Some(page) = &options.markdown {
        std::fs::write(page, report.markdown())
            .with_context(|| format!("write {}", page.display()))?;
    }
    if options.json {
        println!("{:#}", report.json());
    } else {
        print!("{}", report.text());
        if options.refused {
            print!("{}", report.refused_files());
        }
    }
    Ok(!files
        .iter()
        .any(|file| matches!(file.outcome, Outcome::Refused(_))))
}

/// Reads every file of every repository.
fn check(repositories: &[Repository]) -> Result<Vec<CheckedFile>> {
    let mut files = Vec::new();
    let installation = Installation::new(repositories)?;
    for (index, repository) in repositories.iter().enumerate() {
        launch_files::check(index, repository, &installation, &mut files)?;
        parameter_files::check(index, repository, &mut files);
    }
    interfaces::check(repositories, &mut files);
    files.sort_by(|one, other| {
        (one.repository, one.kind, &one.path).cmp(&(other.repository, other.kind, &other.path))
    });
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pteros_test_support::folder::Folder;
    use std::collections::BTreeMap;
    use std::path::Path;

    /// The repository of each name, and the outcome of each file by its path.
    fn outcomes(
        folder: &Folder,
        names: &[&str],
    ) -> (Vec<Repository>, BTreeMap<String, CheckedFile>) {
        let folders = names.iter().map(|name| folder.join(name));
        let repositories: Result<Vec<_>> = folders.map(|one| Repository::read(&one)).collect();
        let repositories = repositories.unwrap();
        let files = check(&repositories).unwrap().into_iter();
        let by_path = files.map(|file| {
            let name = file
                .path
                .file_name()
                .unwrap()
                .to_string_lossy()
                .into_owned();
            (name, file)
        });
        let by_path = by_path.collect();
        (repositories, by_path)
    }

    fn package(name: &str) -> String {
        format!(
            "<package format=\"3\"><name>{name}</name><export><build_type>ament_cmake</build_type></export></package>"
        )
    }

    fn expect(files: &BTreeMap<String, CheckedFile>, expected: &[(&str, &str)]) {
        for (name, word) in expected {
            let file = files
                .get(*name)
                .unwrap_or_else(|| panic!("{name} is not listed"));
            assert_eq!(file.outcome.word(), *word, "{name}: {:?}", file.faults);
        }
        assert_eq!(files.len(), expected.len(), "{:?}", files.keys());
    }

    #[test]
    fn launch_files_are_counted_by_outcome() {
        let folder = Folder::new("launch");
        let launch = |name: &str, body: &str| {
            let text = format!("<launch>{body}</launch>");
            folder.write(&format!("a+one/drive/launch/{name}"), &text);
        };
        folder.write("a+one/drive/package.xml", &package("drive"));
        folder.write(
            "a+one/drive/CMakeLists.txt",
            "install(DIRECTORY deep/config # comment\n  DESTINATION share/${PROJECT_NAME})\n",
        );
        folder.write(
            "a+one/drive/deep/config/speed.txt",
            "/**: {ros__parameters: {v: 1}}",
        );
        launch(
            "accepted.launch.xml",
            r#"<node pkg="drive" exec="wheels"><param from="$(find-pkg-share drive)/config/speed.txt"/></node>
               <include file="$(find-pkg-share other)/other.launch.xml"/>"#,
        );
        launch("package.launch.xml", r#"<node pkg="nowhere" exec="a"/>"#);
        launch(
            "argument.launch.xml",
            r#"<arg name="on"/><node if="$(var on)" pkg="drive" exec="wheels"/>"#,
        );
        launch(
            "file.launch.xml",
            r#"<include file="$(dirname)/none.launch.xml"/>"#,
        );
        launch("extension.launch.xml", r#"<gz_server world_sdf_file="a"/>"#);
        launch("element.launch.xml", "<engine/>");
        launch(
            "attribute.launch.xml",
            r#"<node pkg="drive" exec="wheels" colour="red"/>"#,
        );
        launch(
            "substitution.launch.xml",
            r#"<let name="a" value="$(shout b)"/>"#,
        );
        launch("malformed.launch.xml", "<group>");
        launch("ours.launch.xml", r#"<group if="perhaps"/>"#);
        launch(
            "node.launch",
            r#"<node pkg="drive" type="wheels" name="w"/>"#,
        );
        folder.write("a+one/drive/launch/code.launch.py", "");
        folder.write("a+one/drive/settings.yaml", "launch: 1\nother: 2\n");
        folder.write("b+two/other/package.xml", &package("other"));
        folder.write("b+two/other/other.launch.xml", "<launch/>");
        let (repositories, files) = outcomes(&folder, &["a+one", "b+two"]);
        assert_eq!(repositories[0].name, "a/one");
        expect(
            &files,
            &[
                ("accepted.launch.xml", "accepted"),
                ("other.launch.xml", "accepted"),
                ("package.launch.xml", "needs_more"),
                ("argument.launch.xml", "needs_more"),
                ("file.launch.xml", "needs_more"),
                ("extension.launch.xml", "needs_more"),
                ("element.launch.xml", "refused_by_ros2"),
                ("attribute.launch.xml", "refused_by_ros2"),
                ("substitution.launch.xml", "refused_by_ros2"),
                ("malformed.launch.xml", "refused_by_ros2"),
                ("ours.launch.xml", "refused"),
                ("node.launch", "ros1"),
                ("code.launch.py", "left_out"),
            ],
        );
        let list: Vec<CheckedFile> = files.into_values().collect();
        let launch = folder.text("a+one/drive/launch");
        let outcomes = format!(
            "accepted\t{launch}/accepted.launch.xml\nrefused\t{launch}/element.launch.xml\naccepted\t{launch}/ours.launch.xml\n"
        );
        folder.write("outcomes.tsv", &outcomes);
        let outcomes = ParserOutcomes::read(&folder.join("outcomes.tsv")).unwrap();
        let report = Report::new(&repositories, &list, &outcomes);
        assert!(
            report
                .markdown()
                .contains("| launch files | 1 | 1 | 1 | 0 |")
        );
        assert!(
            report
                .text()
                .contains("66.66 % accepted of accepted and refused")
        );
        assert!(
            report
                .refused_files()
                .contains("ours.launch.xml: another fault")
        );
        let page = report.markdown();
        assert!(
            page.contains("| a/one | 1 / 2 | 0 / 0 | 0 / 0 | 10 |"),
            "{page}"
        );
        assert!(!page.contains("ours.launch.xml"), "the page names no file");
        let json = report.json();
        assert_eq!(json["totals"]["launch_files"]["accepted"], 2);
        assert_eq!(json["files"].as_array().map(Vec::len), Some(13));
    }

    #[test]
    fn parameter_files_and_definitions_are_counted_by_outcome() {
        let folder = Folder::new("files");
        folder.write("one/arm/package.xml", &package("arm"));
        for (name, text) in [
            (
                "accepted.yaml",
                "a:\n  ros__parameters: {x: 1, l: [{y: 2}]}\n",
            ),
            ("types.yaml", "a:\n  ros__parameters: {x: [1, two]}\n"),
            ("name.yaml", "a b:\n  ros__parameters: {x: 1}\n"),
            ("yaml.yml", "a: [\n  ros__parameters: {x: 1}\n"),
            ("other.yaml", "# ros__parameters\nx: 1\n"),
        ] {
            folder.write(&format!("one/arm/config/{name}"), text);
        }
        for (name, text) in [
            (
                "msg/Accepted.msg",
                "hand/Finger[] fingers\nstd_msgs/Header header\n",
            ),
            ("srv/Do.srv", "---\n"),
            ("msg/Time.msg", "time t\n"),
            ("msg/Type.msg", "Nothing n\n"),
            ("msg/Package.msg", "nowhere_msgs/A a\n"),
            ("msg/Field.msg", "int8 a[3]\n"),
            ("Outside.msg", "int8 a\n"),
        ] {
            folder.write(&format!("one/arm/{name}"), text);
        }
        folder.write("two/hand/package.xml", &package("hand"));
        folder.write("two/hand/msg/Finger.msg", "int8 joints\n");
        let (_, files) = outcomes(&folder, &["one", "two"]);
        expect(
            &files,
            &[
                ("accepted.yaml", "accepted"),
                ("types.yaml", "refused_by_ros2"),
                ("name.yaml", "refused_by_ros2"),
                ("yaml.yml", "refused_by_ros2"),
                ("Accepted.msg", "accepted"),
                ("Finger.msg", "accepted"),
                ("Do.srv", "accepted"),
                ("Time.msg", "refused_by_ros2"),
                ("Type.msg", "refused_by_ros2"),
                ("Package.msg", "needs_more"),
                ("Field.msg", "refused_by_ros2"),
                ("Outside.msg", "left_out"),
            ],
        );
    }

    #[test]
    fn a_line_that_is_no_outcome_is_named() {
        let folder = Folder::new("outcomes");
        folder.write("outcomes.tsv", "accepted\t/a\nmaybe\t/b\n");
        let error = ParserOutcomes::read(&folder.join("outcomes.tsv")).unwrap_err();
        assert!(
            error.to_string().contains("outcomes.tsv:2: \"maybe"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = Repository::read(Path::new("/nowhere/robot")).unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere/robot"));
        let none = Options::try_parse_from(["corpus"]).err().unwrap();
        assert!(none.to_string().contains("Usage: cargo xtask corpus"));
    }
}
