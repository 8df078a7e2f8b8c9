//! Launch guard: nothing that a launch has started outlives it. XML, YAML and Python
//! launch files share this.
//!
//! It marks processes with the id of the launch, and knows their process groups. It ends
//! those that are left at the end. A watchdog does so if the launcher is killed.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::Command;

use super::orphan_cleanup::{LAUNCH_ID_VARIABLE, LaunchProcesses, ORPHAN_ESCALATION};
use super::process_groups::{GroupMember, ProcessGroups};
use super::watchdog::{Watchdog, WatchdogMessage};
use crate::launch_state_machine::StopSignal;

/// The largest number of members that are known of the group of a process that has ended.
const MEMBERS_LEFT_MAX: usize = 16;
/// The number of members known beside the processes that run, with which ended ones go.
const MEMBERS_ENDED_MAX: usize = 256;

/// See the module. A new one has no watchdog.
#[derive(Debug)]
pub struct LaunchGuard {
    processes: LaunchProcesses,
    /// The processes that run and lead a group.
    leaders: BTreeMap<i32, GroupMember>,
    watchdog: Option<Watchdog>,
    /// The folder of temporary files.
    folder: Option<PathBuf>,
}

impl LaunchGuard {
    /// A guard of the launch with that id, which no other launch has.
    pub fn new(launch_id: &str) -> Self {
        Self {
            processes: LaunchProcesses::new(launch_id),
            leaders: BTreeMap::new(),
            watchdog: None,
            folder: None,
        }
    }

    /// The id of the launch.
    pub fn launch_id(&self) -> &str {
        self.processes.launch_id()
    }

    /// The environment variable that marks processes, and its value in a launcher where it
    /// has the value `outer`.
    pub fn mark(&self, outer: Option<&str>) -> (&'static str, String) {
        let own = self.launch_id();
        let launch_ids = match outer.filter(|outer| !outer.is_empty()) {
            Some(outer) => format!("{outer}:{own}"),
            None => own.to_owned(),
        };
        (LAUNCH_ID_VARIABLE, launch_ids)
    }

    /// Starts the watchdog, unless it runs. The command leads to
    /// [`run_watchdog`](super::run_watchdog) with its standard input.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn start_watchdog(&mut self, command: Command) -> io::Result<()> {
        if self.watchdog.is_none() {
            self.watchdog = Some(Watchdog::start(command)?);
            if let Some(folder) = self.folder.clone() {
                self.tell(&WatchdogMessage::Folder(folder));
            }
        }
        Ok(())
    }

    /// Whether there is a watchdog.
    pub fn has_watchdog(&self) -> bool {
        self.watchdog.is_some()
    }

    fn tell(&mut self, message: &WatchdogMessage) {
        if let Some(watchdog) = &mut self.watchdog {
            watchdog.tell(message);
        }
    }

    /// Names the folder of temporary files, which the watchdog deletes.
    pub fn set_folder(&mut self, folder: PathBuf) {
        self.tell(&WatchdogMessage::Folder(folder.clone()));
        self.folder = Some(folder);
    }

    fn add(&mut self, member: GroupMember) {
        self.processes.groups.add(member);
        self.tell(&WatchdogMessage::Added(member));
    }

    fn remove(&mut self, member: GroupMember) {
        self.processes.groups.remove(member);
        self.tell(&WatchdogMessage::Removed(member));
    }

    /// Adds a process that leads a group; those that it starts may lose the mark.
    pub fn add_leader(&mut self, pid: u32) {
        let member = i32::try_from(pid).ok().and_then(GroupMember::of);
        if let Some(member) = member {
            self.leaders.insert(member.pid, member);
            self.add(member);
        }
    }

    /// Removes a leader that has ended and was waited for; the rest of its group stays.
    pub fn remove_leader(&mut self, pid: u32) {
        let Ok(pid) = i32::try_from(pid) else {
            return;
        };
        let left = ProcessGroups::left_of(pid);
        if !left.is_empty() {
            for member in left.into_iter().take(MEMBERS_LEFT_MAX) {
                self.add(member);
            }
            if self.processes.groups.len() > self.leaders.len() + MEMBERS_ENDED_MAX {
                for member in self.processes.groups.ended() {
                    self.remove(member);
                }
            }
        }
        if let Some(leader) = self.leaders.remove(&pid) {
            self.remove(leader);
        }
    }

    /// Sends a signal to the processes of the launch and returns their number.
    pub fn signal(&mut self, stop: Option<StopSignal>) -> usize {
        self.processes.signal(stop)
    }

    /// Ends the processes of the launch and returns how many are left. Blocks for at most
    /// 4 s.
    pub fn end_processes(&mut self) -> usize {
        self.processes.end(&ORPHAN_ESCALATION)
    }

    /// Ends the watchdog after the launch has ended. Blocks for at most 2 s.
    pub fn finish(&mut self) {
        self.leaders.clear();
        if let Some(mut watchdog) = self.watchdog.take() {
            watchdog.finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::process::CommandExt;
    use std::process::Stdio;

    use super::*;

    /// Starts a leader that leaves a process behind, and returns that process's id.
    fn leave_behind(guard: &mut LaunchGuard, script: &str) -> i32 {
        let mark = guard.mark(None);
        let mut command = Command::new("sh");
        command.args(["-c", script]).env(mark.0, mark.1);
        let command = command.process_group(0).stdout(Stdio::piped());
        let mut leader = command.spawn().unwrap();
        guard.add_leader(leader.id());
        let mut line = String::new();
        let mut out = BufReader::new(leader.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        leader.wait().unwrap();
        guard.remove_leader(leader.id());
        line.trim().parse().unwrap()
    }

    #[test]
    fn what_processes_leave_behind_is_found_by_mark_or_group_and_ended() {
        for script in [
            "sleep 1000 >/dev/null & echo $!",
            "setsid sleep 1000 >/dev/null & echo $!",
            "env -i sleep 1000 >/dev/null & echo $!",
            "env -i sh -c 'trap : TERM; while :; do sleep 0.05; done' >/dev/null & echo $!",
        ] {
            let id = format!("guard-{}-{}", std::process::id(), script.len());
            let mut guard = LaunchGuard::new(&id);
            let left = leave_behind(&mut guard, script);
            let member = GroupMember::of(left).unwrap();
            assert!(guard.signal(None) >= 1, "{script}");
            assert_eq!(guard.end_processes(), 0, "{script}");
            // A zombie until its new parent waits for it.
            let state = std::fs::read_to_string(format!("/proc/{left}/stat"));
            let is_gone = GroupMember::of(left) != Some(member);
            assert!(
                is_gone || state.is_ok_and(|state| state.contains(") Z")),
                "{script}"
            );
        }
    }

    #[test]
    fn an_outer_launch_keeps_its_mark() {
        let guard = LaunchGuard::new("b");
        assert_eq!(guard.mark(Some("a")).1, "a:b");
        assert_eq!(guard.mark(Some("")).1, "b");
    }
}
