//! Judges the cases of a suite by the exceptions: what failed unexpectedly, and which
//! lines of the exceptions are stale.

use super::case::{CaseStatus, ProgramRun};
use super::exceptions::Exceptions;

/// A suite's counts, and a line for each case that needs a look.
#[derive(Default)]
pub struct Judged {
    pub passed: usize,
    pub failed: usize,
    /// Failures with an exception.
    pub expected: usize,
    pub skipped: usize,
    pub notes: Vec<String>,
}

impl Judged {
    /// The line to print.
    pub fn line(&self, suite: &str) -> String {
        format!(
            "{suite}: {} passed, {} failed, {} expected, {} skipped",
            self.passed, self.failed, self.expected, self.skipped
        )
    }
}

/// Compares statuses with the exceptions.
pub fn judge(suite: &str, runs: &[ProgramRun], exceptions: &Exceptions) -> Judged {
    let mut judged = Judged::default();
    for run in runs {
        if run.was_repeated {
            let note = format!("{}: passed when it was repeated", run.program);
            judged.notes.push(note);
        }
        for case in &run.cases {
            let reason = exceptions.reason(suite, &run.program, &case.name);
            let name = format!("{} {}", run.program, case.name);
            match (case.status, reason) {
                (CaseStatus::Passed, _)
                    if !exceptions.must_fail(suite, &run.program, &case.name) =>
                {
                    judged.passed += 1;
                }
                (CaseStatus::Skipped, _) => judged.skipped += 1,
                (CaseStatus::Failed, Some(_)) => judged.expected += 1,
                (CaseStatus::Failed, None) => {
                    judged.failed += 1;
                    let log = run.log.display();
                    judged.notes.push(format!("failed: {name}, see {log}"));
                }
                (CaseStatus::Passed, _) => {
                    judged.failed += 1;
                    let file = exceptions.file;
                    judged
                        .notes
                        .push(format!("stale: {name} passes; remove its line from {file}"));
                }
            }
        }
        for case in exceptions.unknown(suite, &run.program, &run.cases) {
            judged.failed += 1;
            judged.notes.push(format!(
                "stale: {} has no case {case}; remove its line from {}",
                run.program, exceptions.file
            ));
        }
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::super::case::Case;
    use super::*;

    fn program(cases: &[(&str, CaseStatus)]) -> ProgramRun {
        let cases = cases.iter().map(|(name, status)| Case::new(name, *status));
        ProgramRun {
            program: "test_a".into(),
            cases: cases.collect(),
            was_repeated: false,
            log: "/log".into(),
        }
    }

    #[test]
    fn an_exception_that_passes_or_is_gone_fails_as_an_unexpected_failure_does() {
        let exceptions = Exceptions::parse(
            "the file",
            "rcl test_a B.expected | theirs\n\
             rcl test_a B.passes | was theirs\n\
             rcl test_a B.d | sometimes: measures time\n\
             rcl test_a B.gone | was renamed\n\
             rcl test_other B.c | another program, which did not run\n",
        )
        .unwrap();
        let run = program(&[
            ("B.expected", CaseStatus::Failed),
            ("B.passes", CaseStatus::Passed),
            ("B.fails", CaseStatus::Failed),
            ("B.skipped", CaseStatus::Skipped),
            ("B.d", CaseStatus::Passed),
        ]);
        let judged = judge("rcl", &[run], &exceptions);
        assert_eq!(
            judged.line("rcl"),
            "rcl: 1 passed, 3 failed, 1 expected, 1 skipped"
        );
        let has = |part: &str| judged.notes.iter().any(|note| note.contains(part));
        assert!(has("failed: test_a B.fails, see /log") && has("stale: test_a B.passes passes"));
        assert!(has("stale: test_a has no case B.gone"));
    }
}
