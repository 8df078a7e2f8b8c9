//! Per-thread buffers for reuse, which remain usable after the thread has destroyed its
//! thread-local values.
//!
//! In C++, `exit` destroys a node in a global variable after the thread-local values of
//! the main thread. Messages that it then sends use a separate buffer.
//!
//! The test starts a thread, because it is about the end of one.

use std::cell::RefCell;
use std::thread::LocalKey;

/// Calls `work` with the thread's buffer, or with `spare` if the thread has destroyed it.
pub(crate) fn with_buffer<T, R>(
    buffer: &'static LocalKey<RefCell<T>>,
    spare: impl FnOnce() -> T,
    work: impl FnOnce(&mut T) -> R,
) -> R {
    if buffer.try_with(|_| ()).is_ok() {
        return buffer.with_borrow_mut(work);
    }
    work(&mut spare())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    /// Writes into both buffers when its thread ends, whether they are destroyed or not.
    struct Late(Sender<(usize, usize)>);

    thread_local! {
        static EARLY: RefCell<Vec<u8>> = RefCell::new(vec![1, 2]);
        static LATE: RefCell<Option<Late>> = const { RefCell::new(None) };
        static LAST: RefCell<Vec<u8>> = RefCell::new(vec![1, 2]);
    }

    fn length(buffer: &'static LocalKey<RefCell<Vec<u8>>>) -> usize {
        with_buffer(buffer, Vec::new, |bytes| {
            bytes.push(3);
            bytes.len()
        })
    }

    impl Drop for Late {
        fn drop(&mut self) {
            // The test holds the receiver.
            let _ = self.0.send((length(&EARLY), length(&LAST)));
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "a thread that ends")]
    fn a_thread_that_ends_uses_a_spare_for_a_buffer_that_is_gone() {
        let (sender, receiver) = channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert_eq!(length(&EARLY), 3);
                LATE.with_borrow_mut(|late| *late = Some(Late(sender)));
                assert_eq!(length(&LAST), 3);
            });
        });
        let (early, last) = receiver.recv().unwrap();
        // One of them is destroyed before, the other one after.
        assert_eq!([early.min(last), early.max(last)], [1, 4]);
    }
}
