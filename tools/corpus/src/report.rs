//! Totals by repository, kind, outcome and reason; as text, JSON and a page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::outcome::{CheckedFile, FileKind, Outcome};
use crate::parser_outcomes::ParserOutcomes;
use crate::repository::Repository;

pub struct Report<'r> {
    repositories: &'r [Repository],
    files: &'r [CheckedFile],
    outcomes: &'r ParserOutcomes,
}

/// Counts of one kind of file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Files that are accepted.
    pub accepted: usize,
    /// Files that need things which are not in the folders.
    pub needs_more: usize,
    /// Files that ROS 2 refuses as well.
    pub refused_by_ros2: usize,
    /// Files of ROS 1.
    pub ros1: usize,
    /// Files that are not read.
    pub left_out: usize,
    /// Files that are refused.
    pub refused: usize,
}

impl Totals {
    fn add(&mut self, outcome: &Outcome) {
        let count = match outcome {
            Outcome::Accepted => &mut self.accepted,
            Outcome::NeedsMore(_) => &mut self.needs_more,
            Outcome::RefusedByRos2(_) => &mut self.refused_by_ros2,
            Outcome::Ros1 => &mut self.ros1,
            Outcome::LeftOut(_) => &mut self.left_out,
            Outcome::Refused(_) => &mut self.refused,
        };
        *count += 1;
    }

    /// Accepted files of those that are complete and that no known rule of ROS 2
    /// refuses, in percent with two digits, rounded down.
    fn share(&self) -> String {
        let known = self.accepted + self.refused;
        if known == 0 {
            return "–".into();
        }
        let hundredths = self.accepted * 10_000 / known;
        format!("{}.{:02} %", hundredths / 100, hundredths % 100)
    }

    fn sum(&self) -> usize {
        self.accepted
            + self.needs_more
            + self.refused_by_ros2
            + self.ros1
            + self.left_out
            + self.refused
    }

    fn json(&self) -> Value {
        json!({
            "accepted": self.accepted,
            "needs_more": self.needs_more,
            "refused_by_ros2": self.refused_by_ros2,
            "ros1": self.ros1,
            "left_out": self.left_out,
            "refused": self.refused,
        })
    }
}

impl<'r> Report<'r> {
    /// The report on these files.
    pub fn new(
        repositories: &'r [Repository],
        files: &'r [CheckedFile],
        outcomes: &'r ParserOutcomes,
    ) -> Self {
        Self {
            repositories,
            files,
            outcomes,
        }
    }

    fn totals(&self, kind: FileKind, repository: Option<usize>) -> Totals {
        let mut totals = Totals::default();
        let files = self.files.iter().filter(|file| file.kind == kind);
        for file in files.filter(|file| repository.is_none_or(|one| file.repository == one)) {
            totals.add(&file.outcome);
        }
        totals
    }

    /// Number of files by kind, outcome and reason, the most frequent first.
    fn reasons(&self, kind: FileKind) -> Vec<(&Outcome, usize)> {
        let mut counts: BTreeMap<&Outcome, usize> = BTreeMap::new();
        for file in self.files.iter().filter(|file| file.kind == kind) {
            *counts.entry(&file.outcome).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.retain(|(outcome, _)| outcome.reason().is_some());
        counts.sort_by_key(|(outcome, count)| {
            (outcome.word(), std::cmp::Reverse(*count), outcome.reason())
        });
        counts
    }

    /// Totals and reasons for a terminal.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let _ = writeln!(text, "{} repositories", self.repositories.len());
        for kind in FileKind::ALL {
            let totals = self.totals(kind, None);
            let _ = writeln!(text, "\n{} {}", totals.sum(), kind.plural());
            let rows = [
                ("accepted", totals.accepted),
                ("refused", totals.refused),
                ("refused by ROS 2 as well", totals.refused_by_ros2),
                ("need what is not in the folders", totals.needs_more),
                ("of ROS 1", totals.ros1),
                ("left out", totals.left_out),
            ];
            for (label, count) in rows.iter().filter(|(_, count)| *count > 0) {
                let _ = writeln!(text, "  {count:6} {label}");
            }
            let _ = writeln!(
                text,
                "  {} accepted of accepted and refused",
                totals.share()
            );
            for (outcome, count) in self.reasons(kind) {
                if let Some(reason) = outcome.reason() {
                    let _ = writeln!(text, "  {count:6} {}: {reason}", outcome.word());
                }
            }
        }
        text
    }

    /// Every refused file with its first faults.
    pub fn refused_files(&self) -> String {
        let mut text = String::new();
        for file in self.files {
            if let Outcome::Refused(reason) = file.outcome {
                let repository = &self.repositories[file.repository];
                let path = file.path.display();
                let _ = writeln!(text, "{}: {path}: {reason}", repository.name);
                for fault in file.faults.iter().take(FAULTS_SHOWN_MAX) {
                    let _ = writeln!(text, "    {fault}");
                }
            }
        }
        text
    }

    /// Everything, for programs.
    pub fn json(&self) -> Value {
        let totals = |repository| -> Value {
            let kinds = FileKind::ALL.iter();
            let kinds = kinds.map(|kind| {
                let totals = self.totals(*kind, repository).json();
                (kind.plural().replace(' ', "_"), totals)
            });
            Value::Object(kinds.collect())
        };
        let repositories = self.repositories.iter().enumerate();
        let repositories = repositories.map(
            |(index, repository)| json!({"name": repository.name, "totals": totals(Some(index))}),
        );
        let reasons = FileKind::ALL.iter().flat_map(|kind| {
            self.reasons(*kind).into_iter().map(|(outcome, count)| {
                json!({
                    "kind": kind.plural(),
                    "outcome": outcome.word(),
                    "reason": outcome.reason().map(|reason| reason.0),
                    "files": count,
                })
            })
        });
        let files = self.files.iter().map(|file| {
            json!({
                "repository": self.repositories[file.repository].name,
                "path": file.path.display().to_string(),
                "kind": file.kind.plural(),
                "outcome": file.outcome.word(),
                "reason": file.outcome.reason().map(|reason| reason.0),
                "faults": file.faults,
            })
        });
        json!({
            "totals": totals(None),
            "reasons": reasons.collect::<Vec<_>>(),
            "repositories": repositories.collect::<Vec<_>>(),
            "files": files.collect::<Vec<_>>(),
        })
    }

    /// A page with totals, reasons and a row per repository. It names no file.
    pub fn markdown(&self) -> String {
        let mut page = String::from(INTRODUCTION);
        let _ = writeln!(
            page,
            "\n## Totals of {} repositories\n",
            self.repositories.len()
        );
        page.push_str(
            "| files | accepted | refused | accepted of both | ROS 2 refuses as well | need more | ROS 1 | left out |\n|---|---:|---:|---:|---:|---:|---:|---:|\n",
        );
        for kind in FileKind::ALL {
            let totals = self.totals(kind, None);
            let _ = writeln!(
                page,
                "| {} | {} | {} | {} | {} | {} | {} | {} |",
                kind.plural(),
                totals.accepted,
                totals.refused,
                totals.share(),
                totals.refused_by_ros2,
                totals.needs_more,
                totals.ros1,
                totals.left_out,
            );
        }
        if !self.outcomes.is_empty() {
            page.push_str(AGREEMENT);
            for kind in FileKind::ALL {
                let found = self.outcomes.compare(kind, self.repositories, self.files);
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {} | {} |",
                    kind.plural(),
                    found.both_accept,
                    found.both_refuse,
                    found.pteros_refuses,
                    found.ros2_refuses,
                );
            }
        }
        page.push_str(
            "\n## Reasons\n\n| files | outcome | number | reason |\n|---|---|---:|---|\n",
        );
        for kind in FileKind::ALL {
            for (outcome, count) in self.reasons(kind) {
                if let Some(reason) = outcome.reason() {
                    let label = label(outcome);
                    let _ = writeln!(page, "| {} | {label} | {count} | {reason} |", kind.plural());
                }
            }
        }
        page.push_str(
            "\n## Repositories\n\nEach cell has the accepted files, and behind a slash all that ROS 2 accepts and that need nothing else.\n\n| repository | launch | parameters | definitions | other files |\n|---|---:|---:|---:|---:|\n",
        );
        for (index, repository) in self.repositories.iter().enumerate() {
            let _ = write!(page, "| {} |", repository.name);
            let mut other = 0;
            for kind in FileKind::ALL {
                let totals = self.totals(kind, Some(index));
                let known = totals.accepted + totals.refused;
                other += totals.sum() - known;
                let _ = write!(page, " {} / {known} |", totals.accepted);
            }
            let _ = writeln!(page, " {other} |");
        }
        page
    }
}

const FAULTS_SHOWN_MAX: usize = 5;

/// An outcome in words.
fn label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Accepted => "accepted",
        Outcome::NeedsMore(_) => "needs more",
        Outcome::RefusedByRos2(_) => "ROS 2 refuses as well",
        Outcome::Ros1 => "ROS 1",
        Outcome::LeftOut(_) => "left out",
        Outcome::Refused(_) => "refused",
    }
}

const AGREEMENT: &str = "
## Outcomes of ROS 2's own parsers

`--outcomes FILE` names the outcomes of `launch_xml` with `launch_ros`, of rcl's parameter
parser and of `rosidl_adapter` on the same files. They parse and do not evaluate. So a file
that needs more counts as accepted here, and files of ROS 1 are left out.

| files | both accept | both refuse | Pteros alone refuses | ROS 2 alone refuses |
|---|---:|---:|---:|---:|
";

const INTRODUCTION: &str = "# Files of public repositories

`cargo xtask corpus --markdown FILE DIR…` reads every launch file, parameter file and
interface definition of checked-out repositories. It writes this page, and anyone can
run it on other repositories. The repositories' files are not part of this tree.

- **Launch files** in XML and YAML are checked as `pteros launch --check` does. Packages
  of the folders count as installed, and their programs and components as built. Python
  launch files are counted and left out.
- **Parameter files** are YAML files with `ros__parameters`. They are read as a node
  reads `--params-file`.
- **Interface definitions** (`.msg`, `.srv`, `.action`, `.idl`) are parsed and described
  with every type that they use.

*ROS 2 refuses as well* counts files that break a rule of ROS 2's own parsers. *Need
more* counts files whose only faults name something that is not in the folders.
";
