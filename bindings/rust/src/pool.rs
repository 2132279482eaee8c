// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::sys;
use std::ops::Range;
use std::os::raw::{c_char, c_void};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The work that a thread is given: indices, on behalf of a worker.
pub type Body<'a> = &'a (dyn Fn(usize, Range<usize>) + Sync);

/// Your engine's own threads. Results do not depend on them.
///
/// # Safety
/// The library writes to what each index is alone for, and counts on it:
/// `parallel_for` passes `body` ranges that together cover `0..count`, each index
/// exactly once; those of one call that run at the same time have different
/// workers below `concurrency`; and when it returns, or unwinds, none runs any
/// more. `concurrency` is at least 1 and always the same.
pub unsafe trait Executor: Sync {
    /// How many threads may run bodies at the same time.
    fn concurrency(&self) -> usize;
    /// Runs `body` for every index. `grain` indices are about `fork_ns` of work: less
    /// is not worth a thread.
    fn parallel_for(&self, count: usize, grain: usize, body: Body<'_>);
    /// What it takes now to fork and join, in nanoseconds of serial work. It changes
    /// where work is shared out, never bits.
    fn fork_ns(&self) -> usize {
        30_000
    }
}

/// Who does the work of a call.
#[derive(Clone, Copy)]
pub enum Pool<'a> {
    /// The calling thread.
    Serial,
    /// oneTBB.
    Tbb(&'a Tbb),
    /// Your own threads.
    Own(&'a dyn Executor),
}

/// A pool on oneTBB, dropped with its last use.
pub struct Tbb(*const sys::swy_executor);
// SAFETY: any thread may call it, and several at once.
unsafe impl Send for Tbb {}
// SAFETY: the same.
unsafe impl Sync for Tbb {}
impl Tbb {
    /// A pool of so many threads, the caller counted, or as many as TBB has. None if the
    /// library was built without TBB, for 0 threads, or if memory is out.
    pub fn new(threads: Option<u16>) -> Option<Tbb> {
        // SAFETY: any number will do.
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
        // SAFETY: made by create, and destroyed once.
        unsafe { sys::swy_tbb_executor_destroy(self.0) }
    }
}

/// Threads of the standard library's, started for each call that is long enough
/// for two: for programs without a pool.
pub struct ScopedThreads(pub std::num::NonZeroUsize);
// SAFETY: the scope ends with all threads, of which each has its own range.
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
// SAFETY: the library's bodies are for any thread, several at once.
unsafe impl Sync for BodyContext {}
impl BodyContext {
    fn run(&self, worker: usize, range: Range<usize>) {
        // SAFETY: the executor's promise.
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
    // SAFETY: `with` made it, and waits for this call.
    let executor = unsafe { *(context as *const &dyn Executor) };
    let body = BodyContext(body, body_context);
    let run = || executor.parallel_for(count, grain, &|worker, range| body.run(worker, range));
    let (code, message): (i32, &'static [u8]) = match catch_unwind(AssertUnwindSafe(run)) {
        Ok(()) => (sys::SWY_OK, b"\0"),
        Err(payload) => {
            std::mem::forget(payload); // whose drop might panic, too
            (sys::SWY_INTERNAL, b"Executor: panicked\0")
        }
    };
    sys::swy_status { code, message: message.as_ptr() as *const c_char }
}

unsafe extern "C" fn fork_ns_of_own(context: *mut c_void) -> usize {
    // SAFETY: `with` made it, and waits for this call.
    let executor = unsafe { *(context as *const &dyn Executor) };
    catch_unwind(AssertUnwindSafe(|| executor.fork_ns())).unwrap_or_else(|payload| {
        std::mem::forget(payload); // whose drop might panic, too
        usize::MAX
    })
}

impl Pool<'_> {
    /// How many threads may work at the same time.
    pub fn concurrency(self) -> usize {
        // SAFETY: made by `Tbb::new`.
        self.with(|pool| unsafe { pool.as_ref() }.map_or(1, |pool| pool.concurrency))
    }
    /// `call` with this pool as C has it, which is no longer than the call.
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
