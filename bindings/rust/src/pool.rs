// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::sys;
use std::ops::Range;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The function that does the work of a range of indices. Its first argument is the
/// number of the worker that runs it.
pub type Body<'a> = &'a (dyn Fn(usize, Range<usize>) + Sync);

/// Lends the library the threads of your engine. Results do not depend on the executor.
///
/// # Safety
/// A body writes to memory that belongs to its indices or its worker, so the library
/// relies on these rules:
/// * `parallel_for` passes to `body` ranges that together cover `0..count`, each
///   index exactly once.
/// * Bodies of one call that run at the same time get different worker numbers, all below
///   `concurrency`.
/// * When `parallel_for` returns or unwinds, no body of the call runs any more.
/// * `concurrency` returns at least 1, and always the same number.
pub unsafe trait Executor: Sync {
    /// Returns the number of threads that may run bodies at the same time.
    fn concurrency(&self) -> usize;
    /// Runs `body` for every index in `0..count`. `grain` indices take about `fork_ns` on
    /// one thread; less work is not worth a thread.
    fn parallel_for(&self, count: usize, grain: usize, body: Body<'_>);
    /// Returns the current cost of a fork and join, in nanoseconds of serial work. This
    /// cost decides which loops run on several threads. It never changes results.
    fn fork_ns(&self) -> usize {
        30_000
    }
}

/// The threads that do the work of a call.
#[derive(Clone, Copy)]
pub enum Pool<'a> {
    /// The calling thread.
    Serial,
    /// The threads of oneTBB.
    Tbb(&'a Tbb),
    /// Your own threads.
    Own(&'a dyn Executor),
}

/// A pool on oneTBB's threads.
pub struct Tbb(*const sys::swy_executor);
// SAFETY: any thread may call the TBB executor.
unsafe impl Send for Tbb {}
// SAFETY: several threads may call the TBB executor at the same time.
unsafe impl Sync for Tbb {}
impl Tbb {
    /// Makes a pool of `threads` threads including the caller, or of all of TBB's threads
    /// if `threads` is `None`. Returns `None` if `threads` is 0, if the library was built
    /// without TBB, or if there is not enough memory.
    pub fn new(threads: Option<u16>) -> Option<Tbb> {
        // SAFETY: the function accepts any number of threads.
        let raw = unsafe { sys::swy_tbb_executor_create(threads.map_or(-1, i32::from)) };
        if raw.is_null() {
            None
        } else {
            Some(Tbb(raw))
        }
    }
}
impl Drop for Tbb {
    fn drop(&mut self) {
        // SAFETY: `new` made the executor, and only `drop` destroys it.
        unsafe { sys::swy_tbb_executor_destroy(self.0) }
    }
}

/// An executor on threads of the standard library, for programs without a pool. Each loop
/// with enough work for two threads starts new threads.
pub struct ScopedThreads(pub std::num::NonZeroUsize);
// SAFETY: the ranges are disjoint and cover `0..count`, each range has its own worker,
// and the scope ends only after all of its threads have ended.
unsafe impl Executor for ScopedThreads {
    fn concurrency(&self) -> usize {
        self.0.get()
    }
    fn parallel_for(&self, count: usize, grain: usize, body: Body<'_>) {
        let workers = self.0.get().min(count / grain.max(1)).max(1);
        let begin = |worker: usize| (count as u128 * worker as u128 / workers as u128) as usize;
        std::thread::scope(|scope| {
            for worker in 1..workers {
                scope.spawn(move || body(worker, begin(worker)..begin(worker + 1)));
            }
            body(0, 0..begin(1));
        });
    }
}

struct BodyContext(sys::swy_body, *mut c_void);
// SAFETY: several threads may call a body of the library at the same time.
unsafe impl Sync for BodyContext {}
impl BodyContext {
    fn run(&self, worker: usize, range: Range<usize>) {
        // SAFETY: the `Executor` guarantees that indices and worker numbers follow its rules.
        unsafe { (self.0)(self.1, worker, range.start, range.end) }
    }
}

unsafe extern "C" fn run_own(
    context: *mut c_void,
    count: usize,
    grain: usize,
    body: sys::swy_body,
    body_context: *mut c_void,
) -> sys::swy_status {
    // SAFETY: `Pool::with` made the context, and returns only after this call.
    let executor = unsafe { *(context as *const &dyn Executor) };
    let body = BodyContext(body, body_context);
    let run = || executor.parallel_for(count, grain, &|worker, range| body.run(worker, range));
    let (code, message): (i32, &'static [u8]) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => (sys::SWY_OK, b"\0"),
        Err(payload) => {
            std::mem::forget(payload); // dropping the payload might panic, too
            (sys::SWY_INTERNAL, b"Executor: panicked\0")
        }
    };
    sys::swy_status { code, message: message.as_ptr() as *const c_char }
}

unsafe extern "C" fn fork_ns_of_own(context: *mut c_void) -> usize {
    // SAFETY: `Pool::with` made the context, and returns only after this call.
    let executor = unsafe { *(context as *const &dyn Executor) };
    catch_unwind(AssertUnwindSafe(|| executor.fork_ns())).unwrap_or_else(|payload| {
        std::mem::forget(payload); // dropping the payload might panic, too
        usize::MAX
    })
}

impl Pool<'_> {
    /// Returns the number of threads that may work at the same time.
    pub fn concurrency(self) -> usize {
        // SAFETY: `pool` is null, or points to an executor that `Tbb::new` or `with` made.
        self.with(|pool| unsafe { pool.as_ref() }.map_or(1, |pool| pool.concurrency))
    }
    /// Passes this pool to `call` in its C form, which is valid during the call only.
    pub(crate) fn with<R>(self, call: impl FnOnce(*const sys::swy_executor) -> R) -> R {
        match self {
            Pool::Serial => call(std::ptr::null()),
            Pool::Tbb(tbb) => call(tbb.0),
            Pool::Own(executor) => call(&sys::swy_executor {
                size: sys::size_of::<sys::swy_executor>(),
                context: &executor as *const &dyn Executor as *mut c_void,
                concurrency: executor.concurrency(),
                parallel_for: Some(run_own),
                fork_ns: Some(fork_ns_of_own),
            }),
        }
    }
}
