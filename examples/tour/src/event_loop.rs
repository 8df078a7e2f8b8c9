//! External event loop: one descriptor is readable when the node has work. This
//! loop is plain poll(2) over that and the keyboard. epoll, GLib, Qt or mio can use
//! the descriptor as well.

use std::error::Error;
use std::io::{BufRead, Write, stdin, stdout};
use std::os::fd::AsFd;
use std::time::Duration;

use pteros::executors::PolledExecutor;
use pteros::interfaces::std_msgs::msg::String as Text;
use pteros::prelude::*;
use rustix::event::{PollFd, PollFlags, poll};

pub fn main() -> Result<(), Box<dyn Error>> {
    let context = Context::new()?;
    let node = context.create_node("guest")?;
    let publisher = node.create_publisher::<Text>("chatter".keep_last(10))?;
    let _heard = node.create_subscription("chatter".keep_last(10), |text: Sample<Text>| {
        println!("received: {}", text.data);
        let _ = stdout().flush();
    })?;
    let _timer = node.create_timer(Duration::from_millis(200), || println!("tick"))?;
    let executor = SingleThreadedExecutor::new(&context);
    executor.add_node(&node)?;
    let executor = PolledExecutor::new(executor)?;

    let (keyboard, mut typing) = (stdin(), true);
    while !context.is_shut_down() {
        let watch = |fd| PollFd::from_borrowed_fd(fd, PollFlags::IN);
        let mut watched = vec![watch(executor.as_fd())];
        if typing {
            watched.push(watch(keyboard.as_fd()));
        }
        // No timeout is needed: timers and deadlines are part of the descriptor.
        match poll(&mut watched, None) {
            // A signal arrived. The context handles it.
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let is_ready = |fd: &PollFd<'_>| !fd.revents().is_empty();
        let typed = watched.get(1).is_some_and(is_ready);
        if watched.first().is_some_and(is_ready) {
            executor.spin_some();
        }
        if typed {
            let mut line = String::new();
            typing = keyboard.lock().read_line(&mut line)? > 0;
            if typing {
                let data = line.trim_end().to_owned();
                publisher.publish_owned(Text { data })?;
            }
        }
    }
    Ok(())
}
