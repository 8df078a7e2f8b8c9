//! A temporary folder of one test, for its launch files and others, and the processes
//! that a launch starts.

use crate::support::{Answer, finish, install_program, pteros};
use pteros_test_support::folder::Folder;
use std::fs::File;
use std::ops::Deref;
use std::path::PathBuf;
use std::process::Command;

/// A folder in which `pteros launch` runs.
pub struct LaunchFolder(Folder);

impl Deref for LaunchFolder {
    type Target = Folder;

    fn deref(&self) -> &Folder {
        &self.0
    }
}

impl LaunchFolder {
    pub fn new(name: &str) -> Self {
        Self(Folder::new(name))
    }

    /// Writes a program, and returns its path.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let program = self.join(name);
        install_program(self.write("program.txt", text), &program);
        program
    }

    /// `pteros launch WORDS` in the folder, with log files below it.
    pub fn command(&self, words: &str) -> Command {
        let mut command = pteros();
        command
            .arg("launch")
            .args(words.split(' '))
            .current_dir(&self.0)
            .env("ROS_LOG_DIR", self.join("log"))
            .env("ROS_AUTOMATIC_DISCOVERY_RANGE", "LOCALHOST")
            .env_remove("PTEROS_LAUNCH")
            .env_remove("OVERRIDE_LAUNCH_PROCESS_OUTPUT");
        command
    }

    /// Runs it until it ends.
    pub fn launch(&self, words: &str) -> Answer {
        finish(self.command(words))
    }

    /// Creates the pipe `alive`. It stays open while any process has it open for
    /// writing: a shell opens it by `exec 3>alive`, and its children inherit that.
    pub fn pipe(&self) {
        self.pipe_called("alive");
    }

    /// Creates a pipe of that name.
    pub fn pipe_called(&self, name: &str) {
        let status = Command::new("mkfifo").arg(self.join(name)).status();
        assert!(status.unwrap().success());
    }

    /// Opens a pipe for writing. Blocks until it has a reader.
    pub fn write_pipe(&self, name: &str) -> File {
        let options = File::options().write(true).open(self.join(name));
        options.unwrap()
    }

    /// Opens the pipe for reading. Blocks until it has a writer; then `read_to_end`
    /// blocks until all writers have ended.
    pub fn open_pipe(&self) -> File {
        File::open(self.join("alive")).unwrap()
    }

    /// The launch id in the environment of the latest launch's processes.
    pub fn launch_id(&self) -> String {
        let latest = self.join("log/latest").read_link().unwrap();
        latest.file_name().unwrap().to_string_lossy().into_owned()
    }
}

/// The processes whose environment contains the launch id. Zombies have no
/// environment.
pub fn processes_with(launch_id: &str) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap();
    let numbers = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    numbers
        .filter(|number: &u32| {
            let environment = std::fs::read(format!("/proc/{number}/environ"));
            let environment = environment.unwrap_or_default();
            let environment = String::from_utf8_lossy(&environment).into_owned();
            environment.contains(&format!("PTEROS_LAUNCH={launch_id}"))
        })
        .collect()
}
