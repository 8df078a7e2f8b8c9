//! A folder that is also an installation prefix, and plans of the launch files in
//! it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use pteros_container::ComponentIndex;
use pteros_launch::plan::LaunchArgument;
use pteros_launch::{LaunchFileErrors, LaunchPlan, LaunchRequest, Packages};

/// Removed when dropped.
pub struct Folder(PathBuf);

static NEXT: AtomicU32 = AtomicU32::new(0);

impl Folder {
    pub fn new() -> Self {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("pteros-launch-plan-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// A program that does nothing.
    pub fn program(&self, name: &str) {
        self.write(name, "#!/bin/sh\n");
        let path = self.0.join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    pub fn request(&self, name: &str, arguments: &[(&str, &str)]) -> LaunchRequest {
        let index = ComponentIndex::new([], [self.0.clone()]);
        let arguments = arguments.iter();
        let path = ("PATH".to_owned(), "/bin:/usr/bin".to_owned());
        LaunchRequest {
            file: self.0.join(name),
            arguments: arguments.map(|(n, v)| ((*n).into(), (*v).into())).collect(),
            environment: BTreeMap::from([path]),
            packages: Packages::new(&index, None),
            components: index,
            log_folder: "/nowhere/log".into(),
            host: "host".into(),
            process: 1,
            ros2_command: Some("/opt/pteros/bin/pteros".into()),
        }
    }

    pub fn plan(
        &self,
        name: &str,
        arguments: &[(&str, &str)],
    ) -> Result<LaunchPlan, LaunchFileErrors> {
        LaunchPlan::read(&self.request(name, arguments))
    }

    pub fn arguments(&self, name: &str) -> Result<Vec<LaunchArgument>, LaunchFileErrors> {
        LaunchPlan::arguments(&self.request(name, &[]))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The plans of a launch file in both formats.
pub fn both(folder: &Folder, xml: &str, yaml: &str) -> [LaunchPlan; 2] {
    folder.write("both.launch.xml", xml);
    folder.write("both.launch.yaml", yaml);
    ["both.launch.xml", "both.launch.yaml"].map(|name| {
        let plan = folder.plan(name, &[]);
        plan.unwrap_or_else(|errors| panic!("{name}: {errors}"))
    })
}
