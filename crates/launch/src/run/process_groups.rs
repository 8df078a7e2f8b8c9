//! Process groups of a launch, for processes that have lost the launch's mark: those that
//! were started with an empty environment, or as another user.
//!
//! The kernel gives a group's id to no other process while the group has a member. So a
//! group is the launch's as long as one of its known members is there.

use std::collections::BTreeSet;
use std::fs;

use rustix::process::Pid;

/// A process and its group. The start time tells it from a later process with its id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct GroupMember {
    pub pid: i32,
    /// In clock ticks since the system's start.
    pub start: u64,
    /// 0 if the group was made outside of this PID namespace.
    pub group: i32,
}

impl GroupMember {
    /// The process with that id, and whether it is a zombie; `None` if there is none.
    fn read(pid: i32) -> Option<(Self, bool)> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The name before it may have any bytes.
        let fields = stat.rsplit(|byte| *byte == b')').next()?;
        let mut fields = std::str::from_utf8(fields).ok()?.split_whitespace();
        let is_ended = matches!(fields.next()?, "Z" | "X");
        let group = fields.nth(1)?.parse().ok()?;
        let start = fields.nth(16)?.parse().ok()?;
        Some((Self { pid, start, group }, is_ended))
    }

    /// The process with that id.
    pub fn of(pid: i32) -> Option<Self> {
        Self::read(pid).map(|(member, _)| member)
    }

    fn is_there(self) -> bool {
        Self::of(self.pid) == Some(self)
    }
}

/// The process group of this process; `None` if it was made outside of this PID namespace, as
/// in a container, where `getpgrp()` is 0. Reads a file of `/proc`.
pub fn own_process_group() -> Option<i32> {
    let own = GroupMember::of(i32::try_from(std::process::id()).ok()?)?;
    Some(own.group).filter(|group| *group > 0)
}

/// The ids of all processes.
pub fn process_ids() -> impl Iterator<Item = i32> {
    let entries = fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// The processes in groups, each with whether it is a zombie.
fn members_of(groups: &BTreeSet<i32>) -> Vec<(GroupMember, bool)> {
    let members = process_ids().filter_map(GroupMember::read);
    members
        .filter(|(member, _)| groups.contains(&member.group))
        .collect()
}

/// The known members of the groups of a launch.
#[derive(Debug, Default)]
pub struct ProcessGroups {
    known: BTreeSet<GroupMember>,
}

impl ProcessGroups {
    /// The number of known members.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// Adds a member.
    pub fn add(&mut self, member: GroupMember) {
        self.known.insert(member);
    }

    /// Removes a member that has ended.
    pub fn remove(&mut self, member: GroupMember) {
        self.known.remove(&member);
    }

    /// The known members that are not there any more.
    pub fn ended(&self) -> Vec<GroupMember> {
        let known = self.known.iter().copied();
        known.filter(|member| !member.is_there()).collect()
    }

    /// The members that the group of an ended leader still has; none if another process has
    /// the leader's id now.
    pub fn left_of(leader: i32) -> Vec<GroupMember> {
        let test = Pid::from_raw(leader).map(rustix::process::test_kill_process_group);
        if test.is_none_or(|found| found.is_err()) {
            // Mostly there are none.
            return Vec::new();
        }
        let members = members_of(&BTreeSet::from([leader]));
        if members.iter().any(|(member, _)| member.pid == leader) {
            return Vec::new();
        }
        members.into_iter().map(|(member, _)| member).collect()
    }

    /// The ids of all members that run, also of those that nobody has added.
    pub fn find(&mut self) -> Vec<i32> {
        let there = self.known.iter().filter(|member| member.is_there());
        let mut groups: BTreeSet<i32> = there.map(|member| member.group).collect();
        let own = own_process_group();
        // Those of group 0 may be of any group.
        groups.retain(|group| *group > 0 && Some(*group) != own);
        if groups.is_empty() {
            self.known.clear();
            return Vec::new();
        }
        let members = members_of(&groups);
        self.known = members.iter().map(|(member, _)| *member).collect();
        let running = members.iter().filter(|(_, is_ended)| !is_ended);
        running.map(|(member, _)| member.pid).collect()
    }

    /// Whether a process is a known member.
    pub fn has(&self, pid: i32) -> bool {
        GroupMember::of(pid).is_some_and(|member| self.known.contains(&member))
    }
}
