//! A program in the background, with its lines, its input, signals and its end.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a line of output and the end may take. Python starts slowly on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A running program. Killed with its process group when dropped.
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    /// All lines that were read.
    pub seen: String,
}

impl Program {
    /// Starts it with the input and output that the command has. Lines of a piped error
    /// output are among the others.
    #[track_caller]
    pub fn spawn(command: &mut Command) -> Self {
        let mut child = command
            .process_group(0)
            .spawn()
            .unwrap_or_else(|why| panic!("{command:?}: {why}"));
        let (sender, lines) = channel();
        if let Some(output) = child.stdout.take() {
            send_lines(output, sender.clone());
        }
        if let Some(errors) = child.stderr.take() {
            send_lines(errors, sender);
        }
        Self {
            child,
            lines,
            seen: String::new(),
        }
    }

    /// Starts it with pipes for its input and its output.
    #[track_caller]
    pub fn start(command: &mut Command) -> Self {
        Self::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()))
    }

    /// The next line, or `None` at the end of the output. Panics after a minute without
    /// a line.
    #[track_caller]
    pub fn next_line(&mut self, wanted: &str) -> Option<String> {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => {
                self.note(&line);
                Some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("no {wanted} in time after:\n{}", self.seen),
        }
    }

    fn note(&mut self, line: &str) {
        self.seen.push_str(line);
        self.seen.push('\n');
    }

    /// Reads the lines that are there.
    pub fn read_lines(&mut self) {
        while let Ok(line) = self.lines.try_recv() {
            self.note(&line);
        }
    }

    /// Reads lines until one contains `text`. Returns the rest of that line, or `None` at
    /// the end of the output.
    #[track_caller]
    pub fn find(&mut self, text: &str) -> Option<String> {
        let end = Instant::now() + TIMEOUT;
        while let Some(line) = self.next_line(text) {
            if let Some((_, rest)) = line.split_once(text) {
                return Some(rest.to_owned());
            }
            assert!(
                Instant::now() < end,
                "no {text:?} in time in:\n{}",
                self.seen
            );
        }
        None
    }

    /// As [`find`](Self::find), for a line that must come.
    #[track_caller]
    pub fn expect(&mut self, text: &str) -> String {
        let found = self.find(text);
        found.unwrap_or_else(|| panic!("it ended without a line with {text:?}:\n{}", self.seen))
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
    #[track_caller]
    pub fn wait(&mut self) -> (String, ExitStatus) {
        let end = Instant::now() + TIMEOUT;
        let mut rest = String::new();
        while let Some(line) = self.next_line("end") {
            rest += &format!("{line}\n");
            assert!(Instant::now() < end, "no end in time in:\n{}", self.seen);
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

    /// Kills it and its process group, as a crash would. It is gone when this returns.
    pub fn kill(&mut self) {
        let group = format!("-{}", self.id());
        // It may have ended already.
        let _ = Command::new("kill")
            .args(["-KILL", "--", &group])
            .stderr(Stdio::null())
            .status();
        let _ = self.child.wait();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Sends the lines of an output from a thread of its own.
fn send_lines(output: impl Read + Send + 'static, to: Sender<String>) {
    std::thread::spawn(move || {
        for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line).into_owned();
            if to.send(line).is_err() {
                break;
            }
        }
    });
}

/// Sends a signal by name, as `INT`, to a process.
pub fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    let status = kill.args(["-s", name, &process.to_string()]).status();
    assert!(status.expect("kill").success(), "{process} is gone");
}
