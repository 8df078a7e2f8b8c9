//! A program in the background, with its lines, its input, signals and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};

/// A running program. Killed when dropped.
pub struct Program {
    child: Child,
    output: Option<BufReader<ChildStdout>>,
}

impl Program {
    /// Starts it with the input and output that the command has.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .spawn()
            .unwrap_or_else(|why| panic!("{command:?}: {why}"));
        let output = child.stdout.take().map(BufReader::new);
        Self { child, output }
    }

    /// Starts it with pipes for its input and its output.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    /// Reads lines until one contains `text`. Returns the rest of that line, or `None` at
    /// the end of the output.
    pub fn find(&mut self, text: &str) -> Option<String> {
        let output = self.output.as_mut().expect("its output is piped");
        let mut lines = output.lines().map_while(Result::ok);
        lines.find_map(|line| Some(line.split_once(text)?.1.to_owned()))
    }

    /// As [`find`](Self::find), for a line that must come.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let found = self.find(text);
        found.unwrap_or_else(|| panic!("it ended without a line with {text:?}"))
    }

    /// Writes a line to its input.
    pub fn write_line(&mut self, line: &str) {
        let input = self.child.stdin.as_mut().expect("its input is piped");
        writeln!(input, "{line}").expect("it reads");
    }

    /// Ends its input.
    pub fn close_input(&mut self) {
        self.child.stdin = None;
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal by name, as `INT`.
    pub fn signal(&self, name: &str) {
        signal(self.id(), name);
    }

    /// Its exit status, if it has ended.
    pub fn try_wait(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("its state")
    }

    /// Waits for its end. Returns the output that nobody has read, and its exit status.
    pub fn wait(&mut self) -> (String, ExitStatus) {
        let mut rest = String::new();
        if let Some(output) = &mut self.output {
            output.read_to_string(&mut rest).expect("text");
        }
        (rest, self.child.wait().expect("its end"))
    }

    /// As [`wait`](Self::wait), for a program that must exit without error.
    #[track_caller]
    pub fn finish(mut self) -> String {
        let (rest, status) = self.wait();
        assert!(status.success(), "{status}: {rest}");
        rest
    }

    /// Interrupts it as Ctrl-C does. It must exit without error.
    #[track_caller]
    pub fn interrupt(self) -> String {
        self.signal("INT");
        self.finish()
    }

    /// Kills it, as a crash would. It is gone when this returns.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends a signal by name, as `INT`, to a process.
pub fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-s", name, &process.to_string()]).status();
    assert!(status.expect("kill").success(), "{process} is gone");
}
