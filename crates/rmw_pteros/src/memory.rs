//! Memory that the caller frees: strings and arrays of its own allocator.

use std::ffi::{c_char, c_void};

use crate::abi::{Allocator, NamesAndTypes, StringArray};
use crate::error::{Failure, Outcome};

impl Allocator {
    /// An allocator without functions, as zero-initialized structures have it.
    pub(crate) const ZERO: Self = Self {
        allocate: None,
        deallocate: None,
        reallocate: None,
        zero_allocate: None,
        state: std::ptr::null_mut(),
    };

    pub(crate) fn is_valid(&self) -> bool {
        self.allocate.is_some()
            && self.deallocate.is_some()
            && self.reallocate.is_some()
            && self.zero_allocate.is_some()
    }

    pub(crate) fn check(&self) -> Outcome {
        if self.is_valid() {
            Ok(())
        } else {
            Err(Failure::argument("the allocator lacks a function"))
        }
    }

    /// Allocates `count` zeroed values; `None` if the allocator refuses.
    fn zeroed<T>(&self, count: usize) -> Option<*mut T> {
        let allocate = self.zero_allocate?;
        // SAFETY: the caller's own function with its own state.
        let memory = unsafe { allocate(count.max(1), size_of::<T>(), self.state) };
        (!memory.is_null()).then_some(memory.cast())
    }

    pub(crate) fn array<T>(&self, count: usize) -> Outcome<*mut T> {
        self.zeroed(count).ok_or_else(Failure::bad_alloc)
    }

    /// # Safety
    /// `memory` is null or from this allocator, and not used any more.
    pub(crate) unsafe fn free<T>(&self, memory: *mut T) {
        if let Some(deallocate) = self.deallocate
            && !memory.is_null()
        {
            // SAFETY: as for this function.
            unsafe { deallocate(memory.cast(), self.state) };
        }
    }

    /// A copy of the text with a NUL.
    pub(crate) fn string(&self, text: &str) -> Outcome<*mut c_char> {
        let memory: *mut u8 = self.array(text.len() + 1)?;
        // SAFETY: there is space for the text; the rest is zero.
        unsafe { memory.copy_from_nonoverlapping(text.as_ptr(), text.len()) };
        Ok(memory.cast())
    }

    /// Resizes an allocation.
    ///
    /// # Safety
    /// As for C's `realloc`.
    pub(crate) unsafe fn resize(&self, memory: *mut u8, bytes: usize) -> Outcome<*mut u8> {
        let reallocate = self.reallocate.ok_or_else(Failure::bad_alloc)?;
        // SAFETY: as for this function.
        let grown: *mut c_void = unsafe { reallocate(memory.cast(), bytes, self.state) };
        if grown.is_null() {
            return Err(Failure::bad_alloc());
        }
        Ok(grown.cast())
    }
}

impl StringArray {
    pub(crate) const ZERO: Self = Self {
        size: 0,
        data: std::ptr::null_mut(),
        allocator: Allocator::ZERO,
    };

    pub(crate) fn is_zero(&self) -> bool {
        self.size == 0 && self.data.is_null()
    }

    /// Fills a zero-initialized array. After a failure it is zero again.
    pub(crate) fn fill<'t>(
        &mut self,
        allocator: &Allocator,
        texts: impl ExactSizeIterator<Item = &'t str>,
    ) -> Outcome {
        let data: *mut *mut c_char = allocator.array(texts.len())?;
        *self = Self {
            size: texts.len(),
            data,
            allocator: *allocator,
        };
        for (at, text) in texts.enumerate() {
            match allocator.string(text) {
                // SAFETY: the array has a place for each text.
                Ok(text) => unsafe { data.add(at).write(text) },
                Err(failure) => {
                    self.clear();
                    return Err(failure);
                }
            }
        }
        Ok(())
    }

    /// Frees the strings and the array.
    pub(crate) fn clear(&mut self) {
        for at in 0..self.size {
            // SAFETY: `size` strings of this allocator, or null.
            unsafe { self.allocator.free(*self.data.add(at)) };
        }
        // SAFETY: `fill` has allocated it.
        unsafe { self.allocator.free(self.data) };
        *self = Self::ZERO;
    }
}

impl NamesAndTypes {
    pub(crate) fn is_zero(&self) -> bool {
        self.names.is_zero() && self.types.is_null()
    }

    /// Fills a zero-initialized structure. After a failure it is zero again.
    pub(crate) fn fill(
        &mut self,
        allocator: &Allocator,
        list: &[(String, Vec<String>)],
    ) -> Outcome {
        self.names
            .fill(allocator, list.iter().map(|(name, _)| name.as_str()))?;
        let types: *mut StringArray = match allocator.array(list.len()) {
            Ok(types) => types,
            Err(failure) => {
                self.names.clear();
                return Err(failure);
            }
        };
        self.types = types;
        for (at, (_, names)) in list.iter().enumerate() {
            // SAFETY: the array has a place for each name.
            let place = unsafe { &mut *types.add(at) };
            *place = StringArray::ZERO;
            if let Err(failure) = place.fill(allocator, names.iter().map(String::as_str)) {
                for before in 0..at {
                    // SAFETY: filled before.
                    unsafe { (*types.add(before)).clear() };
                }
                // SAFETY: allocated above.
                unsafe { allocator.free(types) };
                self.types = std::ptr::null_mut();
                self.names.clear();
                return Err(failure);
            }
        }
        Ok(())
    }
}
