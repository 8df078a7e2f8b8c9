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

use anyhow::{Context, Result, bail};

use installation::Installation;
use outcome::{CheckedFile, Outcome};
use parser_outcomes::ParserOutcomes;
use report::Report;
use repository::Repository;

const USAGE: &str =
    "usage: cargo xtask corpus [--json] [--refused] [--markdown FILE] [--outcomes FILE] DIR…
  DIR              a checked-out repository; several are read together, so that they find
                   each other's packages and types
  --json           print totals, reasons and every file as JSON
  --refused        print every file that is refused, with its first fault
  --markdown FILE  write the totals of repositories and reasons as a page
  --outcomes FILE  compare with outcomes of ROS 2's own parsers: lines of accepted or refused,
                   a tab, and a path";

/// The command line.
#[derive(Default)]
struct Options {
    json: bool,
    refused: bool,
    markdown: Option<PathBuf>,
    outcomes: Option<PathBuf>,
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
    let options = Options::read(std::env::args().skip(1))?;
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

impl Options {
    fn read(mut arguments: impl Iterator<Item = String>) -> Result<Self> {
        let mut options = Self::default();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => options.json = true,
                "--refused" => options.refused = true,
                "--markdown" => {
                    let page = arguments.next();
                    let page = page.context("--markdown has no file; write --markdown FILE")?;
                    options.markdown = Some(page.into());
                }
                "--outcomes" => {
                    let file = arguments.next();
                    let file = file.context("--outcomes has no file; write --outcomes FILE")?;
                    options.outcomes = Some(file.into());
                }
                word if word.starts_with('-') => bail!("there is no option {word}\n{USAGE}"),
                folder => options.folders.push(folder.into()),
            }
        }
        if options.folders.is_empty() {
            bail!("no folder is named\n{USAGE}");
        }
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use std::fs;
    use std::path::Path;

    /// A folder of its own, removed at the end.
    struct Scratch(PathBuf);

    impl Scratch {
        fn new(name: &str) -> Self {
            let name = format!("pteros-corpus-test-{name}-{}", std::process::id());
            let path = std::env::temp_dir().join(name);
            let _ = fs::remove_dir_all(&path);
            Self(path)
        }

        fn write(&self, path: &str, text: &str) {
            let path = self.0.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        /// The repository of each name, and the outcome of each file by its path.
        fn outcomes(&self, names: &[&str]) -> (Vec<Repository>, BTreeMap<String, CheckedFile>) {
            let folders = names.iter().map(|name| self.0.join(name));
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
    }

    impl Drop for Scratch {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
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
        let scratch = Scratch::new("launch");
        let launch = |name: &str, body: &str| {
            let text = format!("<launch>{body}</launch>");
            scratch.write(&format!("a+one/drive/launch/{name}"), &text);
        };
        scratch.write("a+one/drive/package.xml", &package("drive"));
        scratch.write(
            "a+one/drive/CMakeLists.txt",
            "install(DIRECTORY deep/config # comment\n  DESTINATION share/${PROJECT_NAME})\n",
        );
        scratch.write(
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
        scratch.write("a+one/drive/launch/code.launch.py", "");
        scratch.write("a+one/drive/settings.yaml", "launch: 1\nother: 2\n");
        scratch.write("b+two/other/package.xml", &package("other"));
        scratch.write("b+two/other/other.launch.xml", "<launch/>");
        let (repositories, files) = scratch.outcomes(&["a+one", "b+two"]);
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
        let folder = scratch.0.join("a+one/drive/launch").display().to_string();
        let outcomes = format!(
            "accepted\t{folder}/accepted.launch.xml\nrefused\t{folder}/element.launch.xml\naccepted\t{folder}/ours.launch.xml\n"
        );
        scratch.write("outcomes.tsv", &outcomes);
        let outcomes = ParserOutcomes::read(&scratch.0.join("outcomes.tsv")).unwrap();
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
        let scratch = Scratch::new("files");
        scratch.write("one/arm/package.xml", &package("arm"));
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
            scratch.write(&format!("one/arm/config/{name}"), text);
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
            scratch.write(&format!("one/arm/{name}"), text);
        }
        scratch.write("two/hand/package.xml", &package("hand"));
        scratch.write("two/hand/msg/Finger.msg", "int8 joints\n");
        let (_, files) = scratch.outcomes(&["one", "two"]);
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
        let scratch = Scratch::new("outcomes");
        scratch.write("outcomes.tsv", "accepted\t/a\nmaybe\t/b\n");
        let error = ParserOutcomes::read(&scratch.0.join("outcomes.tsv")).unwrap_err();
        assert!(
            error.to_string().contains("outcomes.tsv:2: \"maybe"),
            "{error}"
        );
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = Repository::read(Path::new("/nowhere/robot")).unwrap_err();
        assert!(format!("{error:#}").contains("/nowhere/robot"));
        let none = Options::read(std::iter::empty()).err().unwrap();
        assert!(none.to_string().contains("usage: cargo xtask corpus"));
    }
}
