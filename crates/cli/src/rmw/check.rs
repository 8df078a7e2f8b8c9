//! `pteros rmw check`: the findings of `pteros doctor` about the plug-in, and a talker
//! on it.

use super::overlay::Overlay;
use super::{install, talker};
use crate::cli_context::CliContext;
use crate::doctor::finding::{Finding, FindingSeverity, Findings};
use crate::doctor::plug_in as checks;
use crate::exit_errors::Failed;
use crate::plug_in::PlugIn;
use crate::ros2_installation::{Ros2Installation, usable_prefix};
use anyhow::Result;
use clap::Args;
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `rmw check`.
#[derive(Debug, Args)]
#[command(after_help = "Exit code 0 if there is no error, 1 if there is one.")]
pub struct Check {
    /// Check the overlay in this folder, as if its setup file were sourced
    /// [default: check this environment]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
}

impl Check {
    /// Prints the findings.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let ros2 = Ros2Installation::find();
        let mut found = Findings::new(checks::AREA);
        let ros2 = match ros2 {
            Ok(ros2) => ros2,
            Err(error) => {
                found.error(format!("{error:#}"), "correct or unset PTEROS_ROS2");
                None
            }
        };
        match &self.prefix {
            Some(prefix) => self.check_prefix(&usable_prefix(prefix)?, ros2.as_ref(), &mut found),
            None => self.check_environment(ros2.as_ref(), &mut found),
        }
        let found = found.into_list();
        let is_error = |f: &&Finding| f.severity == FindingSeverity::Error;
        let errors = found.iter().filter(is_error).count();
        if cli.console.json {
            cli.console.json(&json!({
                "findings": found.iter().map(Finding::json).collect::<Vec<_>>(),
                "errors": errors,
            }))?
        } else {
            let lines: String = found.iter().map(Finding::lines).collect();
            cli.console.styled(&lines)?
        }
        if errors > 0 {
            Err(Failed.into())
        } else {
            Ok(())
        }
    }

    fn check_environment(&self, ros2: Option<&Ros2Installation>, found: &mut Findings) {
        checks::check_environment(ros2, true, found);
        if PlugIn::on_library_path().is_empty() {
            return;
        }
        let setup = ros2.filter(|ros2| !ros2.is_sourced);
        let setup = setup.and_then(Ros2Installation::setup_folder);
        let files: Vec<PathBuf> = setup
            .map(|folder| folder.join("setup.bash"))
            .into_iter()
            .collect();
        check_talker(ros2, &files, found);
    }

    fn check_prefix(
        &self,
        prefix: &std::path::Path,
        ros2: Option<&Ros2Installation>,
        found: &mut Findings,
    ) {
        let overlay = Overlay {
            prefix: prefix.to_owned(),
            keeps_setup_files: false,
        };
        if let Some(ros2) = ros2 {
            found.ok(ros2.title());
        }
        let missing: Vec<PathBuf> = [overlay.library(), overlay.setup("bash")]
            .into_iter()
            .filter(|path| !path.is_file())
            .collect();
        if let Some(path) = missing.first() {
            found.error(
                format!("{} does not exist", path.display()),
                format!("pteros rmw install --prefix {}", prefix.display()),
            );
            return;
        }
        checks::check_library(&overlay.library(), ros2, true, found);
        if let Some(ros2) = ros2 {
            check_talker(Some(ros2), &install::setup_files(&overlay, ros2), found);
        } else {
            check_talker(None, &[], found);
        }
    }
}

/// Starts a talker, where there is one.
fn check_talker(ros2: Option<&Ros2Installation>, setup: &[PathBuf], found: &mut Findings) {
    let Some(ros2) = ros2 else {
        found.note_with(
            "no ROS 2 was found, so no talker was started",
            "source its setup file, or name its prefix in PTEROS_ROS2",
        );
        return;
    };
    let Some(program) = talker::find(ros2) else {
        found.note_with(
            format!("{} has no talker to start", ros2.prefix.display()),
            "install demo_nodes_cpp",
        );
        return;
    };
    match talker::hear(&program, setup) {
        Ok(heard) => found.ok(format!(
            "{}; it runs on {}",
            heard.text(),
            heard.library.display()
        )),
        Err(error) => found.error(
            format!("{error:#}"),
            "see the other findings; run the program by itself with RMW_IMPLEMENTATION set",
        ),
    }
}
