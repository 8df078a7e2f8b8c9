//! Plug-in check: which middleware rclcpp and rclpy programs of this environment use,
//! and whether `rmw_pteros_cpp` is found and fits the ROS 2 that is there.

use super::finding::{Finding, Findings};
use crate::plug_in::{FILE, NAME, PlugIn, VERSION};
use crate::ros2_installation::{Ros2Installation, VARIABLE, path_list};
use std::path::Path;

/// The area of the findings.
pub const AREA: &str = "ROS 2 plug-in";

/// Checks the environment. Without ROS 2 and without the plug-in there is nothing to
/// report.
pub fn check() -> Vec<Finding> {
    let mut found = Findings::new(AREA);
    match Ros2Installation::find() {
        Ok(ros2) => check_environment(ros2.as_ref(), false, &mut found),
        Err(error) => found.error(format!("{error:#}"), format!("correct or unset {VARIABLE}")),
    }
    found.into_list()
}

/// Reports ROS 2, the middleware in use, and the plug-in. `is_wanted`: the plug-in is
/// what the user asks about.
pub fn check_environment(ros2: Option<&Ros2Installation>, is_wanted: bool, found: &mut Findings) {
    let chosen = std::env::var("RMW_IMPLEMENTATION").unwrap_or_default();
    let is_chosen = chosen == NAME;
    let libraries = PlugIn::on_library_path();
    if ros2.is_none() && !is_chosen && libraries.is_empty() && !is_wanted {
        return;
    }
    match ros2 {
        Some(ros2) => found.ok(ros2.title()),
        None => found.note_with(
            "no ROS 2 was found",
            format!("source its setup file, or name its prefix in {VARIABLE}"),
        ),
    }
    if is_chosen {
        found.ok(format!(
            "RMW_IMPLEMENTATION={NAME}: rclcpp and rclpy programs run on Pteros"
        ));
    } else if ros2.is_some() || is_wanted {
        let current = match chosen.as_str() {
            "" => "RMW_IMPLEMENTATION is not set: rclcpp and rclpy programs use ROS 2's default \
                   middleware"
                .to_owned(),
            other => format!("RMW_IMPLEMENTATION={other}: rclcpp and rclpy programs use it"),
        };
        found.note_with(
            current,
            format!("to run them on Pteros: export RMW_IMPLEMENTATION={NAME}"),
        );
    }
    let Some(library) = libraries.first() else {
        let text = format!("no folder of LD_LIBRARY_PATH has {FILE}");
        let fix = "pteros rmw install, then source the setup file that it names";
        if is_chosen || is_wanted {
            found.error(text, fix);
        }
        return;
    };
    check_library(library, ros2, is_chosen || is_wanted, found);
    if let Some(second) = libraries.get(1) {
        found.warn(
            format!(
                "a second {FILE} is in {}, which is not used",
                second.display()
            ),
            "remove one of the folders from LD_LIBRARY_PATH",
        );
    }
    let index = format!("share/ament_index/resource_index/rmw_typesupport/{NAME}");
    let mut prefixes = path_list("AMENT_PREFIX_PATH").into_iter();
    if !prefixes.any(|prefix| prefix.join(&index).is_file()) {
        found.note_with(
            format!("no prefix of AMENT_PREFIX_PATH names {NAME}: programs run, packages cannot be built for it"),
            "pteros rmw install, then source the setup file that it names",
        );
    }
}

/// Reports what a file was built for, and whether that fits. A file that programs do
/// not use (`is_used` is false) is worth a warning at most.
pub fn check_library(
    path: &Path,
    ros2: Option<&Ros2Installation>,
    is_used: bool,
    found: &mut Findings,
) {
    let report = |found: &mut Findings, text: String, fix: &str| match is_used {
        true => found.error(text, fix),
        false => found.warn(text, fix),
    };
    let plug_in = match PlugIn::read(path) {
        Ok(plug_in) => plug_in,
        Err(error) => return report(found, format!("{error:#}"), "pteros rmw install"),
    };
    let shown = plug_in.path.display();
    let fits = ros2.map_or(Ok(()), |ros2| plug_in.check_abi(ros2));
    match fits {
        Ok(()) => found.ok(format!(
            "{shown}: version {}, for ROS 2 {}",
            plug_in.version,
            plug_in.distribution()
        )),
        Err(error) => {
            let text = format!("{error:#}");
            let (what, fix) = text
                .rsplit_once("; ")
                .unwrap_or((&text, "pteros rmw install"));
            report(found, what.to_owned(), fix);
        }
    }
    if plug_in.version != VERSION {
        found.warn(
            format!(
                "{shown} is of version {}, this command of {VERSION}",
                plug_in.version
            ),
            "pteros rmw install",
        );
    }
}
