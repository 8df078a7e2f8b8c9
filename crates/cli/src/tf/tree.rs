//! `pteros tf tree`: all frames, as `view_frames` shows them, without a PDF.

use crate::outcome::Interrupted;
use crate::session::Session;
use crate::shared::Shared;
use crate::values::positive_seconds;
use anyhow::{Result, bail};
use clap::Args;
use pteros::Node;
use pteros::tf::{FrameReport, TransformListener};
use serde_json::{Value, json};
use std::time::Duration;

/// Arguments of `tf tree`.
#[derive(Debug, Args)]
pub struct Tree {
    /// Listen for this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive_seconds)]
    spin_time: Duration,
    /// As tf2's `allFramesAsYAML`
    #[arg(long, conflicts_with = "dot")]
    yaml: bool,
    /// A graph for Graphviz: pteros tf tree --dot | dot -Tpdf > frames.pdf
    #[arg(long)]
    dot: bool,
}

impl Tree {
    /// Listens for a while and prints what was heard.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let session = Session::open(shared, None)?;
        let transforms = TransformListener::new(&session.node)?;
        let graph = session.context.graph();
        graph.wait_until(self.spin_time, || session.context.is_shut_down());
        if session.context.is_shut_down() {
            return Err(Interrupted.into());
        }
        let buffer = transforms.buffer();
        let (frames, console) = (buffer.frames(), shared.console);
        if frames.is_empty() {
            let seconds = self.spin_time.as_secs_f64();
            bail!(
                "no transform came within {seconds} s from {} publishers of /tf and /tf_static; listen for longer with --spin-time, or see what stands between: pteros topic why /tf",
                transforms.matched_count()
            );
        }
        if console.json {
            let frames = frames.iter().map(|frame| as_json(&session.node, frame));
            return Ok(console.json(&frames.collect::<Value>())?);
        }
        if self.yaml {
            return Ok(console.text(&buffer.frames_yaml())?);
        }
        if self.dot {
            return Ok(console.text(&buffer.frames_dot())?);
        }
        for root in frames.iter().filter(|frame| frame.link.parent.is_none()) {
            console.line(&root.link.frame)?;
            let mut lines = Vec::new();
            branch(&frames, &root.link.frame, "", &mut lines);
            let names = lines.iter().map(|(name, _)| name.chars().count());
            let width = names.max().unwrap_or(0);
            for (name, frame) in lines {
                let told = told(&session.node, frame);
                console.line(format!("{name:width$}  {told}"))?;
            }
        }
        Ok(())
    }
}

/// What hangs below a frame, each with its place in the drawing. Frames in a circle
/// hang below no root.
fn branch<'f>(
    frames: &'f [FrameReport],
    parent: &str,
    indent: &str,
    lines: &mut Vec<(String, &'f FrameReport)>,
) {
    let of_parent = |frame: &&FrameReport| frame.link.parent.as_deref() == Some(parent);
    let mut children = frames.iter().filter(of_parent).peekable();
    while let Some(child) = children.next() {
        let (corner, below) = match children.peek() {
            Some(_) => ("├─ ", "│  "),
            None => ("└─ ", "   "),
        };
        lines.push((format!("{indent}{corner}{}", child.link.frame), child));
        branch(
            frames,
            &child.link.frame,
            &format!("{indent}{below}"),
            lines,
        );
    }
}

fn told(node: &Node, frame: &FrameReport) -> String {
    let how = match (frame.link.span, frame.rate()) {
        (None, _) => "static".to_string(),
        (Some((_, newest)), rate) => {
            let age = node.now().since(newest).as_secs_f64();
            let rate = rate.map_or("once".into(), |rate| format!("{rate:.1} Hz"));
            format!("{rate}, {age:.3} s old")
        }
    };
    format!(
        "{how}, by {}",
        frame.link.authority.as_deref().unwrap_or("nobody known")
    )
}

fn as_json(node: &Node, frame: &FrameReport) -> Value {
    let link = &frame.link;
    let newest = link.span.map(|(_, newest)| newest);
    json!({
        "frame": link.frame,
        "parent": link.parent,
        "static": frame.is_static,
        "authority": link.authority,
        "transforms": frame.transforms,
        "rate": frame.rate(),
        "oldest": link.span.map(|(oldest, _)| oldest.as_nanos()),
        "newest": newest.map(pteros::clock::Time::as_nanos),
        "age": newest.map(|newest| node.now().since(newest).as_secs_f64()),
    })
}
