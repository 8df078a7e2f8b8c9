//! `pteros topic list`.

use super::lookup::shown_topics;
use crate::cli_context::CliContext;
use crate::session::{DiscoveryFlags, Session};
use anyhow::Result;
use clap::Args;
use pteros::log::escape_line;
use serde_json::{Value, json};

/// Arguments of `topic list`.
#[derive(Debug, Args)]
pub struct List {
    #[command(flatten)]
    discovery: DiscoveryFlags,
    /// Show the types too
    #[arg(short = 't', long)]
    show_types: bool,
    /// Only print how many topics there are
    #[arg(short = 'c', long)]
    count_topics: bool,
    /// Show types and numbers of publishers and subscriptions
    #[arg(short = 'v', long)]
    verbose: bool,
}

struct Row {
    name: String,
    types: Vec<String>,
    publisher_count: usize,
    subscription_count: usize,
}

impl List {
    /// Prints the topics, sorted.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let session = Session::open_with_standard_topics(cli)?;
        let graph = session.discover(&self.discovery);
        let rows: Vec<Row> = shown_topics(&session, &graph, cli.include_hidden)
            .into_iter()
            .map(|topic| Row {
                publisher_count: graph.publishers(&topic.name).len(),
                subscription_count: graph.subscriptions(&topic.name).len(),
                name: topic.name,
                types: topic.types,
            })
            .collect();
        let console = cli.console;
        if console.json {
            let topics: Vec<Value> = rows.iter().map(Row::json).collect();
            let output = if self.count_topics {
                json!({ "count": rows.len() })
            } else {
                Value::from(topics)
            };
            return Ok(console.json(&output)?);
        }
        if self.count_topics {
            return Ok(console.line(rows.len().to_string())?);
        }
        if self.verbose && !rows.is_empty() {
            console.line(verbose(&rows, "Published", "publisher", |row| {
                row.publisher_count
            }))?;
            console.line(verbose(&rows, "Subscribed", "subscriber", |row| {
                row.subscription_count
            }))?;
            return Ok(());
        }
        for row in &rows {
            let text = if self.show_types && !self.verbose {
                format!("{} [{}]", row.name, row.types.join(", "))
            } else {
                row.name.clone()
            };
            console.line(escape_line(&text))?;
        }
        Ok(())
    }
}

impl Row {
    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "types": self.types,
            "publisher_count": self.publisher_count,
            "subscription_count": self.subscription_count,
        })
    }
}

/// One block of `-v` in ros2's format.
fn verbose(rows: &[Row], heading: &str, noun: &str, count: impl Fn(&Row) -> usize) -> String {
    let mut text = format!("{heading} topics:\n");
    for row in rows.iter().filter(|row| count(row) > 0) {
        let plural = if count(row) > 1 { "s" } else { "" };
        let types = row.types.join(", ");
        let line = format!(" * {} [{types}] {} {noun}{plural}", row.name, count(row));
        text += &escape_line(&line);
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_verbose_format_is_that_of_ros2() {
        let rows = [Row {
            name: "/chatter".into(),
            types: vec!["std_msgs/msg/String".into()],
            publisher_count: 2,
            subscription_count: 0,
        }];
        assert_eq!(
            verbose(&rows, "Published", "publisher", |row| row.publisher_count),
            "Published topics:\n * /chatter [std_msgs/msg/String] 2 publishers\n"
        );
        let forged = [Row {
            name: "/a\n * /b".into(),
            types: vec!["c\nd".into()],
            publisher_count: 1,
            subscription_count: 0,
        }];
        assert_eq!(
            verbose(&forged, "Published", "publisher", |row| row.publisher_count),
            "Published topics:\n * /a\\n * /b [c\\nd] 1 publisher\n"
        );
        assert_eq!(
            verbose(&rows, "Subscribed", "subscriber", |row| row
                .subscription_count),
            "Subscribed topics:\n"
        );
    }
}
