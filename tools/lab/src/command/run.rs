//! `pteros-lab run`.

use super::setting::{Ending, Setting};
use anyhow::Result;
use clap::Args;
use pteros_lab::measurement::Extent;
use pteros_lab::report::{Report, summary};
use pteros_lab::run::{RunRequest, RunStatus, run};
use pteros_lab::store::Store;
use std::path::PathBuf;

/// Arguments of `run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Papers (m16), experiments (m16.1), own benchmarks (own.wire), or all of the papers; `pteros lab list` has them
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// Some values of each parameter, 20 minutes in total (the default)
    #[arg(long, conflicts_with_all = ["full", "smoke"])]
    quick: bool,
    /// The values, counts and durations of the papers, several hours
    #[arg(long, conflicts_with = "smoke")]
    full: bool,
    /// One tiny configuration of each kind, as a functional test
    #[arg(long)]
    smoke: bool,
    /// Other stacks to measure (cyclone, fastdds, ros1, iceoryx2, zenoh, hiroz; rclcpp, rclpy, rosbag2), or none
    /// [default: all that fit; rclcpp and rclpy in own.ros2 only]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    peers: Option<Vec<String>>,
    /// Implementations to measure (pteros, pteros-udp, cyclone-tuned …)
    /// [default: all that fit]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    implementations: Vec<String>,
    /// Starts of cases (inter-64B); all cases of a full run that begin so
    /// [default: those of the extent]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Folder of the run; an existing run is continued
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Repeats of each configuration [default: 3 quick, 5 full, 1 smoke; benchmarks 1 quick]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    repeats: Option<u16>,
    /// Install missing stacks: Debian packages (as root), crates
    #[arg(long)]
    install_peers: bool,
}

impl Run {
    /// Measures, then prints the summary.
    pub fn run(self, cli: &Setting) -> Result<Ending> {
        let request = RunRequest {
            what: self.what,
            extent: match (self.full, self.smoke) {
                (true, _) => Extent::Full,
                (_, true) => Extent::Smoke,
                _ => Extent::Quick,
            },
            peers: self.peers.map(|mut list| {
                list.retain(|name| name != "none");
                list
            }),
            implementations: self.implementations,
            only: self.only,
            out: self.out,
            repeats: self.repeats.map(usize::from),
            install_allowed: self.install_peers,
        };
        let stop = pteros_net::shutdown_signal()?;
        let ended = run(&request, stop, &mut |text| cli.console.note(text))?;
        if ended == RunStatus::NothingMeasured {
            let text = "interrupted before the first measurement; the same command starts again";
            cli.console.note(text);
            return Ok(Ending::Interrupted);
        }
        let store = Store::open(&request.out)?;
        if cli.console.json {
            let text = store.read("results.json").unwrap_or_default();
            cli.console.text(&text)?;
        } else {
            cli.console.text(&summary(&Report::load(&store)?))?;
            let page = request.out.join("report.html");
            cli.console.line(format!("Report: {}", page.display()))?;
        }
        match ended {
            RunStatus::Done => Ok(Ending::Done),
            RunStatus::Interrupted | RunStatus::NothingMeasured => {
                cli.console
                    .note("interrupted; the same command continues the run");
                Ok(Ending::Interrupted)
            }
        }
    }
}
