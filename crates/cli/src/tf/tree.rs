//! `pteros tf tree`: the frame tree, as `view_frames`, without a PDF.

use crate::cli_context::CliContext;
use crate::session::Session;
use crate::value_parsers::positive_seconds;
use anyhow::{Result, bail};
use clap::Args;
use pteros::Node;
use pteros::log::escape_line;
use pteros::tf::{FrameInfo, TransformListener};
use serde_json::{Value, json};
use std::time::Duration;

/// Arguments of `tf tree`.
#[derive(Debug, Args)]
pub struct Tree {
    /// Receive transforms for this many seconds
    #[arg(long, value_name = "SECONDS", default_value = "1", value_parser = positive_seconds)]
    spin_time: Duration,
    /// Print YAML as tf2's `allFramesAsYAML`
    #[arg(long, conflicts_with = "dot")]
    yaml: bool,
    /// Print a graph for Graphviz: pteros tf tree --dot | dot -Tpdf > frames.pdf
    #[arg(long)]
    dot: bool,
}

impl Tree {
    /// Receives transforms for a while and prints the frame tree.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open(cli, None)?;
        let transforms = TransformListener::new(&session.node)?;
        let graph = session.context.graph();
        graph.wait_until(self.spin_time, || session.context.is_shut_down());
        session.check_interrupted()?;
        let buffer = transforms.buffer();
        let (frames, console) = (buffer.frames(), cli.console);
        if frames.is_empty() {
            let seconds = self.spin_time.as_secs_f64();
            bail!(
                "no transform received within {seconds} s from {} publishers of /tf and /tf_static; wait longer with --spin-time, or find the reason with: pteros topic why /tf",
                transforms.matched_count()
            );
        }
        if console.json {
            let frames = frames.iter().map(|frame| frame_json(&session.node, frame));
            return Ok(console.json(&frames.collect::<Value>())?);
        }
        if self.yaml {
            return Ok(console.text(&buffer.frames_yaml())?);
        }
        if self.dot {
            return Ok(console.text(&buffer.frames_dot())?);
        }
        for root in frames.iter().filter(|frame| frame.edge.parent.is_none()) {
            console.line(escape_line(&root.edge.frame))?;
            let mut lines = Vec::new();
            add_children(&frames, &root.edge.frame, "", &mut lines);
            let names = lines.iter().map(|(name, _)| name.chars().count());
            let width = names.max().unwrap_or(0);
            for (name, frame) in lines {
                let text = frame_text(&session.node, frame);
                console.line(escape_line(&format!("{name:width$}  {text}")))?;
            }
        }
        Ok(())
    }
}

/// Collects the frames below a parent with their tree prefix. Frames in a cycle are
/// below no root.
fn add_children<'f>(
    frames: &'f [FrameInfo],
    parent: &str,
    indent: &str,
    lines: &mut Vec<(String, &'f FrameInfo)>,
) {
    let of_parent = |frame: &&FrameInfo| frame.edge.parent.as_deref() == Some(parent);
    let mut children = frames.iter().filter(of_parent).peekable();
    while let Some(child) = children.next() {
        let (corner, below) = match children.peek() {
            Some(_) => ("├─ ", "│  "),
            None => ("└─ ", "   "),
        };
        lines.push((format!("{indent}{corner}{}", child.edge.frame), child));
        add_children(
            frames,
            &child.edge.frame,
            &format!("{indent}{below}"),
            lines,
        );
    }
}

fn frame_text(node: &Node, frame: &FrameInfo) -> String {
    let how = match (frame.edge.span, frame.rate()) {
        (None, _) => "static".to_string(),
        (Some((_, newest)), rate) => {
            let age = node.now().since(newest).as_secs_f64();
            let rate = rate.map_or("once".into(), |rate| format!("{rate:.1} Hz"));
            format!("{rate}, {age:.3} s old")
        }
    };
    format!(
        "{how}, by {}",
        frame.edge.authority.as_deref().unwrap_or("an unknown node")
    )
}

fn frame_json(node: &Node, frame: &FrameInfo) -> Value {
    let link = &frame.edge;
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
