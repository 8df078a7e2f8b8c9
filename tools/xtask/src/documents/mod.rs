//! Document checks of `cargo xtask tidy`: links between Markdown pages lead to
//! files and headings that exist, every page of `docs/` is in the book's table of
//! contents, code spans that begin with `crates/`, `tools/` or `verify/` name files that
//! exist, those of ARCHITECTURE.md and `docs/internals` also without that folder, and the
//! glossary names files whose headers hold the term.
//!
//! Nothing outside the repository is looked up.

mod glossary;

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use crate::checkout::CRATE_FOLDERS;
use crate::coverage;
use crate::finding::Finding;

/// Pages whose code spans name files of crates: the overview, and those in the folder.
const ARCHITECTURE: &str = "ARCHITECTURE.md";
const INTERNALS: &str = "docs/internals/";
/// The book's table of contents, from the root.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Checks one Markdown page and returns its faults. `path` is relative to the root.
pub fn check(root: &Path, path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |line: usize, message: String| {
        findings.push(Finding {
            path: path.into(),
            line,
            message,
        });
    };
    for link in links(text) {
        if let Err(message) = resolve(root, path, text, link.target) {
            add(link.line, message);
        }
    }
    let names_crates = path == ARCHITECTURE || path.starts_with(INTERNALS);
    for span in code_paths(root, text) {
        let begin = span.target.split('/').next().unwrap_or_default();
        let is_whole = CRATE_FOLDERS.contains(&begin);
        if is_whole && !root.join(span.target).exists() {
            add(
                span.line,
                format!("{}: no such file or folder", span.target),
            );
        } else if !is_whole && names_crates && coverage::find(root, span.target).is_none() {
            add(
                span.line,
                format!("{}: no such file or folder below a crate", span.target),
            );
        }
    }
    if path == SUMMARY {
        for page in missing_pages(root, text) {
            add(
                1,
                format!("{page} is not listed; give it a place in the book"),
            );
        }
    }
    if path == glossary::DOCUMENT {
        glossary::check(root, text, &mut add);
    }
    findings
}

/// An inline link of a page.
struct Link<'a> {
    /// Line from 1.
    line: usize,
    target: &'a str,
}

/// The inline links of a page, outside code fences and code spans.
fn links(text: &str) -> Vec<Link<'_>> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        for (at, _) in line.match_indices("](") {
            let in_code = line[..at].matches('`').count() % 2 == 1;
            let after = &line[at + 2..];
            if let (false, Some(end)) = (in_code, after.find(')')) {
                found.push(Link {
                    line: index + 1,
                    target: &after[..end],
                });
            }
        }
    }
    found
}

/// The code spans that name a path of a crate, such as `rtps/wire/gap.rs`, or one from the
/// root, such as `crates/rtps`.
fn code_paths<'a>(root: &Path, text: &'a str) -> Vec<Link<'a>> {
    let mut found = Vec::new();
    let mut in_fence = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_fence = !in_fence;
        }
        if in_fence {
            continue;
        }
        for span in line.split('`').skip(1).step_by(2) {
            let is_path = span
                .chars()
                .all(|c| c.is_alphanumeric() || "_/.-".contains(c));
            let krate = span.split_once('/').map(|(krate, _)| krate);
            if is_path
                && krate.is_some_and(|krate| {
                    let is_crate = |folder| root.join(folder).join(krate).is_dir();
                    CRATE_FOLDERS.contains(&krate)
                        || (!krate.is_empty() && CRATE_FOLDERS.into_iter().any(is_crate))
                })
            {
                found.push(Link {
                    line: index + 1,
                    target: span,
                });
            }
        }
    }
    found
}

/// Whether the file and the heading that `target` names exist.
fn resolve(root: &Path, page: &str, text: &str, target: &str) -> Result<(), String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return Ok(());
    }
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let own = file.is_empty();
    let path = if own {
        PathBuf::from(page)
    } else {
        let folder = Path::new(page).parent().unwrap_or(Path::new(""));
        normalize(&folder.join(file))
            .ok_or_else(|| format!("{target}: leads out of the repository"))?
    };
    if !own && !root.join(&path).exists() {
        return Err(format!("{target}: no such file or folder; mend the link"));
    }
    let is_page = path.extension().is_some_and(|extension| extension == "md");
    if heading.is_empty() || !is_page {
        return Ok(());
    }
    let there = if own {
        headings(text)
    } else {
        headings(&fs::read_to_string(root.join(&path)).unwrap_or_default())
    };
    if there.contains(heading) {
        Ok(())
    } else {
        Err(format!("{target}: the page has no such heading"))
    }
}

/// The path without `.` and `..`, if it stays below where it begins.
fn normalize(path: &Path) -> Option<PathBuf> {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::ParentDir if !out.pop() => return None,
            _ => {}
        }
    }
    Some(out)
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn headings(text: &str) -> HashSet<String> {
    let mut in_fence = false;
    let mut found = HashSet::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_fence = !in_fence;
        }
        let title = line.trim_start_matches('#');
        if !in_fence && title.len() < line.len() {
            found.insert(anchor(title.trim()));
        }
    }
    found
}

fn anchor(title: &str) -> String {
    let kept = title
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .collect::<String>();
    kept.replace(' ', "-")
}

/// Pages of `docs/` that the table of contents lacks.
fn missing_pages(root: &Path, summary: &str) -> Vec<String> {
    let listed: HashSet<PathBuf> = links(summary)
        .iter()
        .filter_map(|link| normalize(&Path::new("docs").join(link.target)))
        .collect();
    let mut pages = Vec::new();
    let mut folders = vec![PathBuf::from("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).into_iter().flatten() {
            let Ok(entry) = entry else { continue };
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md")
                && path != Path::new(SUMMARY)
                && !listed.contains(&path)
            {
                pages.push(path.display().to_string());
            }
        }
    }
    pages.sort();
    pages
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(path: &str, text: &str) -> Vec<String> {
        let found = check(&crate::checkout::root(), path, text).into_iter();
        found.map(|finding| finding.message).collect()
    }

    #[test]
    fn links_to_files_and_headings_that_exist_pass() {
        let text =
            "# One two\n[a](../README.md) [b](#one-two) [c](https://example.org) `[d](no)`\n";
        assert_eq!(messages("docs/page.md", text), Vec::<String>::new());
    }

    #[test]
    fn broken_links_are_found() {
        let found = messages("docs/page.md", "[a](gone.md) [b](#nowhere) [c](../../x)\n");
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("gone.md"), "{found:?}");
        assert!(found[1].contains("heading"), "{found:?}");
        assert!(found[2].contains("out of the repository"), "{found:?}");
    }

    #[test]
    fn paths_in_code_spans_are_checked_where_pages_explain_files() {
        let text = "`rtps/wire/gap.rs` `rtps/wire` `std/x` `rtps/gone.rs`\n";
        let found = messages("docs/internals/page.md", text);
        assert_eq!(
            found,
            ["rtps/gone.rs: no such file or folder below a crate"]
        );
        assert_eq!(messages("docs/page.md", text), Vec::<String>::new());
    }

    #[test]
    fn paths_from_the_root_are_checked_in_every_page() {
        let text = "`crates/rtps/src/wire/gap.rs` `crates/gone/x.rs` `tools/xtask` `/crates/x`\n";
        for page in ["docs/page.md", "docs/internals/page.md", "README.md"] {
            let found = messages(page, text);
            assert_eq!(
                found,
                ["crates/gone/x.rs: no such file or folder"],
                "{page}"
            );
        }
    }

    #[test]
    fn a_page_outside_the_table_of_contents_is_found() {
        let found = messages(SUMMARY, "[only](README.md)\n");
        assert!(
            found
                .iter()
                .any(|one| one.contains("docs/spec-coverage.md")),
            "{found:?}"
        );
    }
}
