//! `pteros lab run`.

use crate::outcome::Interrupted;
use crate::shared::Shared;
use anyhow::Result;
use clap::Args;
use pteros_lab::experiment::Extent;
use pteros_lab::report::{Report, summary};
use pteros_lab::run::{Ended, Request, run};
use pteros_lab::store::Store;
use std::path::PathBuf;

/// Arguments of `lab run`.
#[derive(Debug, Args)]
pub struct Run {
    /// Papers (m16), experiments (m16.1) or all; `pteros lab list` has them
    #[arg(required = true, value_name = "WHAT")]
    what: Vec<String>,
    /// Some values of each parameter; everything in 20 minutes (the default)
    #[arg(long, conflicts_with_all = ["full", "smoke"])]
    quick: bool,
    /// The papers' own values, counts and durations: hours
    #[arg(long, conflicts_with = "smoke")]
    full: bool,
    /// One tiny cell of each kind, to see whether everything works
    #[arg(long)]
    smoke: bool,
    /// Other stacks that take part (cyclone, fastdds, ros1, iceoryx2, zenoh), or none [default: all that fit]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    peers: Option<Vec<String>>,
    /// Folder of the run; one that is there already is gone on with
    #[arg(long, value_name = "DIR", default_value = "lab-results")]
    out: PathBuf,
    /// Repeats of each cell [default: 3 quick, 5 full, 1 smoke]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    repeats: Option<u16>,
    /// Install stacks that are missing: Debian packages (as root), crates
    #[arg(long)]
    install_peers: bool,
}

impl Run {
    /// Measures, then prints the summary.
    pub fn run(self, shared: &Shared) -> Result<()> {
        let request = Request {
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
            out: self.out,
            repeats: self.repeats.map(usize::from),
            may_install: self.install_peers,
        };
        let stop = pteros_net::shutdown_signal()?;
        let ended = run(&request, stop, &mut |text| shared.console.remark(text))?;
        if ended == Ended::Unbegun {
            let text = "interrupted before anything was measured; the same command begins anew";
            shared.console.remark(text);
            return Err(Interrupted.into());
        }
        let store = Store::open(&request.out)?;
        if shared.console.json {
            let text = store.read("results.json").unwrap_or_default();
            shared.console.text(&text)?;
        } else {
            shared.console.text(&summary(&Report::load(&store)?))?;
            let page = request.out.join("report.html");
            shared.console.line(format!("Report: {}", page.display()))?;
        }
        match ended {
            Ended::Done => Ok(()),
            Ended::Interrupted | Ended::Unbegun => {
                shared
                    .console
                    .remark("interrupted; the same command goes on where it ended");
                Err(Interrupted.into())
            }
        }
    }
}
