//! A temporary folder of one test, for its launch files and others, and the processes
//! that a launch starts.

#![allow(dead_code, reason = "each test file uses a part of it")]

use crate::support::{Answer, finish, install_program, pteros};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Removed when dropped.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new(name: &str) -> Self {
        let name = format!("pteros-test-{name}-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    pub fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes a file, and returns its path.
    pub fn file(&self, name: &str, text: &str) -> String {
        self.write(name, text);
        self.0.join(name).display().to_string()
    }

    /// Writes a program, and returns its path.
    pub fn program(&self, name: &str, text: &str) -> PathBuf {
        let program = self.0.join(name);
        self.write("program.txt", text);
        install_program(self.0.join("program.txt"), &program);
        program
    }

    pub fn read(&self, name: &str) -> String {
        let path = self.0.join(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// `pteros launch WORDS` in the folder, with log files below it.
    pub fn command(&self, words: &str) -> Command {
        let mut command = pteros();
        command
            .arg("launch")
            .args(words.split(' '))
            .current_dir(&self.0)
            .env("ROS_LOG_DIR", self.0.join("log"))
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
        let status = Command::new("mkfifo").arg(self.0.join(name)).status();
        assert!(status.unwrap().success());
    }

    /// Opens a pipe for writing. Blocks until it has a reader.
    pub fn write_pipe(&self, name: &str) -> File {
        let options = File::options().write(true).open(self.0.join(name));
        options.unwrap()
    }

    /// Opens the pipe for reading. Blocks until it has a writer; then `read_to_end`
    /// blocks until all writers have ended.
    pub fn open_pipe(&self) -> File {
        File::open(self.0.join("alive")).unwrap()
    }

    /// The launch id in the environment of the latest launch's processes.
    pub fn launch_id(&self) -> String {
        let latest = self.0.join("log/latest").read_link().unwrap();
        latest.file_name().unwrap().to_string_lossy().into_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
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
