//! User data of callbacks: a pointer of the program that travels to the thread that spins.

use std::ffi::c_void;

/// `pteros_free_user_t`: frees user data.
pub(crate) type FreeUser = Option<extern "C" fn(user: *mut c_void)>;

/// User data of one callback. Dropping it calls the program's `free_user`.
pub(crate) struct UserData {
    pointer: *mut c_void,
    free: FreeUser,
}

// SAFETY: the contract of C (lib.rs): the callback may be called on any thread that spins.
unsafe impl Send for UserData {}
// SAFETY: as above; callbacks that may run at the same time are documented as such.
unsafe impl Sync for UserData {}

impl UserData {
    pub(crate) fn new(pointer: *mut c_void, free: FreeUser) -> Self {
        Self { pointer, free }
    }

    /// The pointer that the program gave.
    pub(crate) fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for UserData {
    fn drop(&mut self) {
        if let Some(free) = self.free {
            free(self.pointer);
        }
    }
}
