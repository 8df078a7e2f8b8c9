//! Jobs that wait for a lane, and which of them comes next.
//!
//! The longest begin first. Few that compute run at once, so that a processor is left to
//! those that wait. What needs other stacks is held back until these are built.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use crate::test_jobs::Job;

/// Jobs that wait for a lane.
struct Queue<'a> {
    timed: VecDeque<&'a Job<'a>>,
    simulated: VecDeque<&'a Job<'a>>,
    /// Those that need the other stacks, as long as those are not built.
    for_peers: Vec<&'a Job<'a>>,
    /// How many that compute are running, and how many may at once.
    computing: usize,
    computing_max: usize,
}

/// The next step of a lane.
enum Next<'a> {
    Run(Job<'a>),
    /// There will be jobs when the other stacks are built.
    Wait,
    End,
}

impl<'a> Queue<'a> {
    /// The longest jobs come first. Those that need other stacks are held back if those
    /// are still to be built.
    fn new(jobs: &[&'a Job<'a>], builds_peers: bool, processors: usize) -> Self {
        let (for_peers, ready) = jobs
            .iter()
            .copied()
            .partition(|job| builds_peers && job.needs_peers());
        let mut queue = Queue {
            timed: VecDeque::new(),
            simulated: VecDeque::new(),
            for_peers,
            computing: 0,
            computing_max: processors.saturating_sub(1).max(1),
        };
        queue.add(ready);
        queue
    }

    fn add(&mut self, mut jobs: Vec<&'a Job<'a>>) {
        jobs.sort_by_key(|job| job.place());
        // Before those that wait: what they wait for has kept them long enough.
        for job in jobs.into_iter().rev() {
            match job.is_simulated() {
                true => self.simulated.push_front(job),
                false => self.timed.push_front(job),
            }
        }
    }

    /// The other stacks are built.
    fn release(&mut self) {
        let jobs = std::mem::take(&mut self.for_peers);
        self.add(jobs);
    }

    /// The next step of a lane. One lane prefers jobs on simulated time. One that computes
    /// comes behind all others while as many as may are running.
    fn next(&mut self, lane: usize) -> Next<'a> {
        let may_compute = self.computing < self.computing_max;
        let timed = self
            .timed
            .iter()
            .position(|job| may_compute || !job.computes());
        let prefers_simulated = lane == 0 || timed.is_none();
        if prefers_simulated && let Some(job) = self.simulated.pop_front() {
            let mut job = *job;
            job.surroundings.yields = true;
            return Next::Run(job);
        }
        if let Some(job) = self.timed.remove(timed.unwrap_or(0)) {
            self.computing += usize::from(job.computes());
            return Next::Run(*job);
        }
        if self.for_peers.is_empty() {
            Next::End
        } else {
            Next::Wait
        }
    }
}

/// The queue that lanes share, and how they hear that it has more.
pub struct SharedQueue<'a> {
    queue: Mutex<Queue<'a>>,
    has_more: Condvar,
}

impl<'a> SharedQueue<'a> {
    /// As [`Queue::new`].
    pub fn new(jobs: &[&'a Job<'a>], builds_peers: bool, processors: usize) -> Self {
        Self {
            queue: Mutex::new(Queue::new(jobs, builds_peers, processors)),
            has_more: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue<'a>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next job of a lane. Blocks while one may still come.
    pub fn next(&self, lane: usize) -> Option<Job<'a>> {
        let mut queue = self.lock();
        loop {
            match queue.next(lane) {
                Next::Run(job) => return Some(job),
                Next::End => return None,
                Next::Wait => {
                    let woken = self.has_more.wait(queue);
                    queue = woken.unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// A job of [`Self::next`] has ended.
    pub fn end(&self, job: &Job) {
        self.lock().computing -= usize::from(!job.surroundings.yields && job.computes());
    }

    /// The other stacks are built, or will not be.
    pub fn release(&self) {
        self.lock().release();
        self.has_more.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::test_process::{Filter, Surroundings, Tests};
    use crate::test_programs::{Kind, TestGroup, TestProgram};

    fn group(package: &str, name: &str) -> TestGroup {
        TestGroup {
            program: TestProgram {
                package: package.into(),
                target: "testsuite".into(),
                kind: Kind::Integration,
                path: PathBuf::new(),
                folder: PathBuf::new(),
                binaries: Vec::new(),
            },
            name: name.into(),
            tests: Vec::new(),
        }
    }

    fn job<'a>(group: &'a TestGroup, peers: Option<&'a Path>) -> Job<'a> {
        Job {
            tests: Tests::Group(group),
            surroundings: Surroundings {
                peers,
                ..Surroundings::default()
            },
            filter: Filter::default(),
        }
    }

    /// The titles of the jobs that a lane gets, one after another, and whether they yield.
    fn order(queue: &mut Queue, lane: usize) -> Vec<(String, bool)> {
        let jobs = std::iter::from_fn(|| match queue.next(lane) {
            Next::Run(job) => Some((job.title(), job.surroundings.yields)),
            Next::Wait | Next::End => None,
        });
        jobs.collect()
    }

    fn owned<const N: usize>(jobs: [(&str, bool); N]) -> Vec<(String, bool)> {
        jobs.map(|(title, yields)| (title.to_owned(), yields))
            .into()
    }

    #[test]
    fn the_longest_jobs_begin_first_and_one_lane_prefers_simulated_ones() {
        let groups = [
            group("pteros", "actions"),
            group("pteros-rtps", "limits"),
            group("pteros", "interop"),
            group("pteros-sim", "mutants"),
        ];
        let jobs = groups.each_ref().map(|group| job(group, None));
        let of_lane = |lane| order(&mut Queue::new(&jobs.each_ref(), true, 2), lane);
        let timed = [("pteros interop", false), ("pteros actions", false)];
        let simulated = [("pteros-sim mutants", true), ("pteros-rtps limits", true)];
        assert_eq!(
            of_lane(0),
            owned([simulated[0], simulated[1], timed[0], timed[1]])
        );
        assert_eq!(
            of_lane(1),
            owned([timed[0], timed[1], simulated[0], simulated[1]])
        );
    }

    #[test]
    fn a_processor_is_left_to_jobs_that_wait() {
        let groups = [
            group("pteros-python", "python"),
            group("pteros-c", "languages"),
            group("pteros", "actions"),
            group("pteros-rtps", "limits"),
        ];
        let jobs = groups.each_ref().map(|group| job(group, None));
        let of_lane = |processors| order(&mut Queue::new(&jobs.each_ref(), false, processors), 1);
        let python = ("pteros-python python", false);
        let languages = ("pteros-c languages", false);
        let actions = ("pteros actions", false);
        let limits = ("pteros-rtps limits", true);
        assert_eq!(of_lane(2), owned([python, actions, limits, languages]));
        assert_eq!(of_lane(3), owned([python, languages, actions, limits]));
    }

    #[test]
    fn jobs_that_need_other_stacks_come_when_these_are_built() {
        let groups = [group("pteros", "interop"), group("pteros", "actions")];
        let peers = Some(Path::new("peers"));
        let jobs = groups.each_ref().map(|group| job(group, peers));
        let interop = ("pteros interop", false);
        let actions = ("pteros actions", false);
        let mut built = Queue::new(&jobs.each_ref(), false, 2);
        assert_eq!(order(&mut built, 1), owned([interop, actions]));
        assert!(matches!(built.next(1), Next::End));
        let mut queue = Queue::new(&jobs.each_ref(), true, 2);
        assert_eq!(order(&mut queue, 1), owned([actions]));
        assert!(matches!(queue.next(1), Next::Wait));
        queue.release();
        assert_eq!(order(&mut queue, 1), owned([interop]));
        assert!(matches!(queue.next(1), Next::End));
    }
}
