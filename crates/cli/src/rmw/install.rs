//! `pteros rmw install`.

use super::overlay::Overlay;
use super::talker;
use crate::cli_context::CliContext;
use crate::plug_in::{BY_THE_HEADERS, DEFAULT_DISTRIBUTION, DISTRIBUTIONS, NAME, PlugIn, VERSION};
use crate::ros2_installation::{Ros2Installation, usable_prefix};
use anyhow::{Result, anyhow, bail};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Arguments of `rmw install`.
#[derive(Debug, Args)]
#[command(
    after_help = "A ROS 2 is found if it is sourced, or if PTEROS_ROS2 names its prefix. Exit code 1 if the talker was not heard."
)]
pub struct Install {
    /// Folder of the overlay; a merged colcon workspace may be named too
    /// [default: pteros/rmw in XDG_DATA_HOME, else ~/.local/share/pteros/rmw]
    #[arg(long, value_name = "DIR")]
    prefix: Option<PathBuf>,
    /// The distribution of ROS 2 that the plug-in is for
    /// [default: that of the ROS 2 that is found, else jazzy]
    #[arg(long, value_name = "NAME", value_parser = DISTRIBUTIONS)]
    distro: Option<String>,
    /// The file of the plug-in
    /// [default: beside this command, or in ../lib/pteros]
    #[arg(long, value_name = "FILE", conflicts_with = "distro")]
    library: Option<PathBuf>,
    /// Write the files only: start no talker
    #[arg(long)]
    no_check: bool,
}

impl Install {
    /// Writes the overlay, starts a talker and prints what to export.
    pub fn run(self, cli: &CliContext) -> Result<()> {
        let prefix = match &self.prefix {
            Some(prefix) => usable_prefix(prefix)?,
            None => default_prefix()?,
        };
        let ros2 = Ros2Installation::find()?;
        let library = match &self.library {
            Some(file) => file.clone(),
            None => PlugIn::beside_command(self.distribution(ros2.as_ref())?)?,
        };
        let plug_in = PlugIn::read(&library)?;
        if let Some(ros2) = &ros2 {
            plug_in.check_abi(ros2)?;
        }
        let underlay = ros2.as_ref().and_then(Ros2Installation::setup_folder);
        let overlay = Overlay::write(&prefix, &plug_in, underlay.as_deref())?;
        let checked = if self.no_check {
            Err("left out by --no-check".to_owned())
        } else {
            self.check(&overlay, ros2.as_ref())?
        };
        self.print(cli, &overlay, &plug_in, ros2.as_ref(), &checked)
    }

    /// The distribution that the user or the installation names.
    fn distribution<'a>(&'a self, ros2: Option<&'a Ros2Installation>) -> Result<&'a str> {
        match (&self.distro, ros2) {
            (Some(name), _) => Ok(name),
            (None, None) => Ok(DEFAULT_DISTRIBUTION),
            (None, Some(ros2)) => ros2.distribution().ok_or_else(|| {
                anyhow!(
                    "Pteros has no plug-in for {}; it has them for {}",
                    ros2.title(),
                    DISTRIBUTIONS.join(", ")
                )
            }),
        }
    }

    /// Starts a talker on the overlay, or says why none can be started.
    fn check(
        &self,
        overlay: &Overlay,
        ros2: Option<&Ros2Installation>,
    ) -> Result<Result<talker::Heard, String>> {
        let Some(ros2) = ros2 else {
            return Ok(Err(
                "no ROS 2 was found: source its setup file, or name its prefix in \
                 PTEROS_ROS2, then run pteros rmw check"
                    .into(),
            ));
        };
        let Some(program) = talker::find(ros2) else {
            return Ok(Err(format!(
                "{} has no talker; install demo_nodes_cpp, then run pteros rmw check",
                ros2.prefix.display()
            )));
        };
        let heard = talker::hear(&program, &setup_files(overlay, ros2))?;
        if heard.library != overlay.library() {
            bail!(
                "{} was heard, but it has loaded {}; remove that folder from LD_LIBRARY_PATH",
                program.display(),
                heard.library.display()
            );
        }
        Ok(Ok(heard))
    }

    fn print(
        &self,
        cli: &CliContext,
        overlay: &Overlay,
        plug_in: &PlugIn,
        ros2: Option<&Ros2Installation>,
        checked: &Result<talker::Heard, String>,
    ) -> Result<()> {
        let setup = overlay.setup("bash");
        let export = format!("export RMW_IMPLEMENTATION={NAME}");
        if cli.console.json {
            return Ok(cli.console.json(&json!({
                "prefix": overlay.prefix.display().to_string(),
                "library": overlay.library().display().to_string(),
                "version": plug_in.version,
                "distribution": plug_in.distribution(),
                "ros2": ros2.map(|ros2| ros2.prefix.display().to_string()),
                "setup": setup.display().to_string(),
                "keeps_setup_files": overlay.keeps_setup_files,
                "export": { "RMW_IMPLEMENTATION": NAME },
                "talker": checked.as_ref().ok().map(talker::Heard::json),
                "talker_left_out": checked.as_ref().err(),
            }))?);
        }
        let mut text = format!(
            "installed {NAME} {} for ROS 2 {} into {}\n",
            plug_in.version,
            plug_in.distribution(),
            overlay.prefix.display()
        );
        if plug_in.version != VERSION {
            text += &format!("note: this command is of version {VERSION}\n");
        }
        if BY_THE_HEADERS.contains(&plug_in.distribution()) {
            text +=
                "note: it was written by the headers of that distribution, and never run with it\n";
        }
        if overlay.keeps_setup_files {
            text += "the setup files of that workspace were kept; they add the plug-in\n";
        }
        text += &match (checked, ros2) {
            (Ok(heard), Some(ros2)) => format!("checked with {}: {}\n", ros2.title(), heard.text()),
            (Ok(heard), None) => format!("checked: {}\n", heard.text()),
            (Err(reason), _) => format!("not checked: {reason}\n"),
        };
        text += &format!(
            "\nTo run rclcpp and rclpy programs on Pteros, in each shell:\n  \
             source {}\n  {export}\n  ros2 daemon stop\n\
             To go back: unset RMW_IMPLEMENTATION, and stop the daemon again.\n",
            setup.display()
        );
        Ok(cli.console.text(&text)?)
    }
}

/// The files to source before a program of this ROS 2 starts.
pub(super) fn setup_files(overlay: &Overlay, ros2: &Ros2Installation) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if !ros2.is_sourced
        && let Some(folder) = ros2.setup_folder()
    {
        files.push(folder.join("setup.bash"));
    }
    files.push(overlay.setup("bash"));
    files
}

fn default_prefix() -> Result<PathBuf> {
    let absolute = |variable: &str| {
        let value = std::env::var_os(variable).map(PathBuf::from);
        value.filter(|path| path.is_absolute())
    };
    let data = absolute("XDG_DATA_HOME")
        .or_else(|| absolute("HOME").map(|home| home.join(".local/share")));
    let data = data.ok_or_else(|| anyhow!("HOME is not set; name the folder with --prefix"))?;
    usable_prefix(&data.join(Path::new("pteros/rmw")))
}
