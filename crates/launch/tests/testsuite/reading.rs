//! A folder that is also an installation prefix, and plans of the launch files in
//! it.

use std::collections::BTreeMap;
use std::ops::Deref;

use pteros_container::ComponentIndex;
use pteros_launch::plan::LaunchArgument;
use pteros_launch::{LaunchFileErrors, LaunchPlan, LaunchRequest, Packages};
use pteros_test_support::folder::Folder;

/// A folder with launch files.
pub struct LaunchFolder(Folder);

impl Deref for LaunchFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl LaunchFolder {
    pub fn new() -> Self {
        Self(Folder::new("launch"))
    }

    /// A program that does nothing.
    pub fn program(&self, name: &str) {
        self.write_script(name, "#!/bin/sh\n");
    }

    pub fn request(&self, name: &str, arguments: &[(&str, &str)]) -> LaunchRequest {
        let index = ComponentIndex::new([], [self.to_path_buf()]);
        let arguments = arguments.iter();
        let path = ("PATH".to_owned(), "/bin:/usr/bin".to_owned());
        LaunchRequest {
            file: self.join(name),
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

/// The plans of a launch file in both formats.
pub fn both(folder: &LaunchFolder, xml: &str, yaml: &str) -> [LaunchPlan; 2] {
    folder.write("both.launch.xml", xml);
    folder.write("both.launch.yaml", yaml);
    ["both.launch.xml", "both.launch.yaml"].map(|name| {
        let plan = folder.plan(name, &[]);
        plan.unwrap_or_else(|errors| panic!("{name}: {errors}"))
    })
}
