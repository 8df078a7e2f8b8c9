//! `cargo xtask picture [PROGRAM|--figures]`: the pictures of the front page, an SVG of
//! what `pteros demo` prints in a terminal and the bar chart of `figures.rs`.
//!
//! Runs the demo with colours, takes its last table, and writes `docs/start/demo.svg`.
//! Colours and bold text are those of the SGR sequences (ECMA-48). Without PROGRAM the
//! command is built first.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::checkout::root;
use crate::figures;
use crate::peers::target_folder;

/// The picture, from the root.
const PICTURE: &str = "docs/start/demo.svg";
/// How long the demo runs.
const SECONDS: &str = "5";
const SIZE_MAX: usize = 200_000;

#[derive(clap::Args)]
pub struct Arguments {
    /// The `pteros` to run; without it one is built
    program: Option<PathBuf>,
    /// Draw only the bar chart
    #[arg(long, conflicts_with = "program")]
    figures: bool,
}

/// Runs the command and returns its output.
pub fn run(arguments: Arguments) -> Result<String> {
    let chart = root().join(figures::CHART);
    std::fs::write(&chart, figures::draw()?)
        .with_context(|| format!("write {}", chart.display()))?;
    if arguments.figures {
        return Ok(format!("wrote {}", figures::CHART));
    }
    let program = arguments.program.map_or_else(build, Ok)?;
    let picture = draw(&shown_lines(&demo(&program)?));
    ensure!(
        picture.len() <= SIZE_MAX,
        "the picture has {} bytes",
        picture.len()
    );
    let path = root().join(PICTURE);
    std::fs::write(&path, picture).with_context(|| format!("write {}", path.display()))?;
    Ok(format!("wrote {PICTURE} and {}", figures::CHART))
}

fn build() -> Result<PathBuf> {
    let status = Command::new(env!("CARGO"))
        .args(["build", "--release", "--package", "pteros-cli"])
        .current_dir(root())
        .status()
        .context("run cargo")?;
    ensure!(status.success(), "the build failed ({status})");
    Ok(target_folder()?.join("release/pteros"))
}

fn demo(program: &Path) -> Result<String> {
    // The demo names itself in what it prints.
    let output = Command::new(program)
        .arg0("pteros")
        .args(["demo", "--seconds", SECONDS])
        .env("CLICOLOR_FORCE", "1")
        .env_remove("NO_COLOR")
        .output()
        .with_context(|| format!("run {}", program.display()))?;
    ensure!(
        output.status.success(),
        "the demo failed ({}): {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).context("read the output of the demo")
}

/// The introduction, the last table and the sum. Without a terminal the demo prints a
/// table per second. What it suggests afterwards is left out.
fn shown_lines(output: &str) -> Vec<&str> {
    let is_sum = |line: &&str| plain(line).contains("carried messages");
    let lines: Vec<&str> = output.lines().collect();
    let end = lines.iter().position(is_sum);
    let lines = &lines[..end.map_or(lines.len(), |end| end + 1)];
    let is_heading = |at: &usize| plain(lines[*at]).starts_with("TOPIC");
    let tables: Vec<usize> = (0..lines.len()).filter(is_heading).collect();
    let (Some(first), Some(last)) = (tables.first(), tables.last()) else {
        return lines.to_vec();
    };
    [&lines[..*first], &lines[*last..]].concat()
}

/// The line without its escape sequences.
fn plain(line: &str) -> String {
    runs(line).into_iter().map(|run| run.text).collect()
}

/// Text of one style.
#[derive(Clone, Debug, Default, PartialEq)]
struct Run {
    text: String,
    bold: bool,
    dim: bool,
    colour: Option<&'static str>,
}

/// Splits a line at its SGR sequences. Other escape sequences are left out.
fn runs(line: &str) -> Vec<Run> {
    let mut all = Vec::new();
    let mut run = Run::default();
    let mut rest = line;
    while let Some((text, behind)) = rest.split_once('\x1b') {
        run.text += text;
        let behind = behind.strip_prefix('[').unwrap_or(behind);
        let end = behind.find(|c: char| c.is_ascii_alphabetic());
        let Some(end) = end else {
            rest = "";
            break;
        };
        if behind[end..].starts_with('m') {
            let next = styled(&run, &behind[..end]);
            all.push(std::mem::replace(&mut run, next));
        }
        rest = &behind[end + 1..];
    }
    run.text += rest;
    all.push(run);
    all.retain(|run| !run.text.is_empty());
    all
}

/// An empty run with the style that `codes` make of that of `run`.
fn styled(run: &Run, codes: &str) -> Run {
    let mut next = Run {
        text: String::new(),
        ..run.clone()
    };
    for code in codes.split(';') {
        match code {
            "" | "0" => next = Run::default(),
            "1" => next.bold = true,
            "2" => next.dim = true,
            "22" => (next.bold, next.dim) = (false, false),
            "31" | "91" => next.colour = Some("#f7768e"),
            "32" | "92" => next.colour = Some("#9ece6a"),
            "33" | "93" => next.colour = Some("#e0af68"),
            "34" | "94" => next.colour = Some("#7aa2f7"),
            "35" | "95" => next.colour = Some("#bb9af7"),
            "36" | "96" => next.colour = Some("#7dcfff"),
            "39" => next.colour = None,
            _ => {}
        }
    }
    next
}

const FONT_SIZE: usize = 14;
const LINE_HEIGHT: usize = 20;
const MARGIN: usize = 16;
/// Width of a character in tenths of a pixel, for a font of that size.
const COLUMN_TENTHS: usize = 84;

/// The picture of a terminal with these lines, below the command that printed them.
fn draw(lines: &[&str]) -> String {
    let mut all = vec!["\x1b[32m$\x1b[0m \x1b[1mpteros demo\x1b[0m"];
    all.extend(lines);
    let columns = all.iter().map(|line| plain(line).chars().count());
    let columns = columns.max().unwrap_or(0);
    let width = columns * COLUMN_TENTHS / 10 + 2 * MARGIN;
    let height = all.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\">\n\
         <title>What pteros demo prints</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1a1b26\"/>\n\
         <g font-family=\"ui-monospace, SFMono-Regular, Menlo, Consolas, monospace\" font-size=\"{FONT_SIZE}\" fill=\"#c0caf5\" xml:space=\"preserve\">\n"
    );
    for (row, line) in all.iter().enumerate() {
        let y = MARGIN + FONT_SIZE + row * LINE_HEIGHT;
        let length = plain(line).trim_end().chars().count() * COLUMN_TENTHS / 10;
        if length == 0 {
            continue;
        }
        // The length keeps columns below each other in any font.
        let _ = write!(
            svg,
            "<text x=\"{MARGIN}\" y=\"{y}\" textLength=\"{length}\" lengthAdjust=\"spacingAndGlyphs\">"
        );
        let mut spans = runs(line);
        if let Some(last) = spans.last_mut() {
            last.text.truncate(last.text.trim_end().len());
        }
        for run in &spans {
            svg += &span(run);
        }
        svg += "</text>\n";
    }
    svg + "</g>\n</svg>\n"
}

fn span(run: &Run) -> String {
    // A browser joins blanks where it does not know xml:space.
    let text = run
        .text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace(' ', "\u{a0}");
    let mut style = String::new();
    if run.bold {
        style += " font-weight=\"bold\"";
    }
    if run.dim {
        style += " opacity=\"0.6\"";
    }
    if let Some(colour) = run.colour {
        let _ = write!(style, " fill=\"{colour}\"");
    }
    if style.is_empty() {
        text
    } else {
        format!("<tspan{style}>{text}</tspan>")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_follow_the_sgr_sequences_and_other_sequences_are_left_out() {
        let all = runs("a\x1b[1;32mb\x1b[2K\x1b[0m c");
        let texts: Vec<&str> = all.iter().map(|run| run.text.as_str()).collect();
        assert_eq!(texts, ["a", "b", " c"]);
        assert_eq!((all[1].bold, all[1].colour), (true, Some("#9ece6a")));
        assert_eq!(
            all[2],
            Run {
                text: " c".into(),
                ..Run::default()
            }
        );
        assert_eq!(plain("\x1b[1mx\x1b"), "x");
    }

    #[test]
    fn markup_in_the_output_is_escaped() {
        let svg = draw(&["<a & b>"]);
        assert!(svg.contains("&lt;a\u{a0}&amp;\u{a0}b&gt;"), "{svg}");
    }

    #[test]
    fn only_the_last_of_several_tables_is_shown() {
        let output = "a robot\n\nTOPIC  HZ\n/a  1\nTOPIC  HZ\n/a  2\nAll 1 carried messages\ntry";
        let shown = [
            "a robot",
            "",
            "TOPIC  HZ",
            "/a  2",
            "All 1 carried messages",
        ];
        assert_eq!(shown_lines(output), shown);
    }

    #[test]
    fn the_picture_of_the_front_page_is_a_small_table_of_the_demo() {
        let svg = std::fs::read_to_string(root().join(PICTURE)).unwrap();
        assert!(svg.len() <= SIZE_MAX && svg.ends_with("</svg>\n"));
        for words in [
            "pteros\u{a0}demo",
            "TOPIC",
            "P50",
            "LOST",
            "carried\u{a0}messages",
        ] {
            assert!(svg.contains(words), "no {words} in {PICTURE}");
        }
        let front = std::fs::read_to_string(root().join("README.md")).unwrap();
        assert!(front.contains(PICTURE), "README.md does not show {PICTURE}");
    }
}
