/// A run that is measured.
struct Measured<'a> {
    clock: &'a dyn ::tfp_embedded::Clock,
    profiler: &'a mut dyn ::tfp_embedded::Profiler,
    start: u64,
    calls: usize,
}

/// Where the C's calls of operators find the run that they belong to; null unless it is measured.
pub(crate) struct Recorder {
    run: core::sync::atomic::AtomicPtr<()>,
}

impl Recorder {
    pub(crate) const fn new() -> Self {
        Self {
            run: core::sync::atomic::AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Runs the model; its calls of operators are told to `profiler`.
    ///
    /// # Safety
    /// No other run of the model happens meanwhile.
    pub(crate) unsafe fn measure<R>(
        &self,
        clock: &dyn ::tfp_embedded::Clock,
        profiler: &mut dyn ::tfp_embedded::Profiler,
        run: impl FnOnce() -> R,
    ) -> R {
        struct End<'a>(&'a Recorder);
        impl Drop for End<'_> {
            fn drop(&mut self) {
                use core::sync::atomic::Ordering::Relaxed;
                self.0.run.store(core::ptr::null_mut(), Relaxed);
            }
        }
        let mut measured = Measured {
            clock,
            profiler,
            start: 0,
            calls: 0,
        };
        let place = (&raw mut measured).cast();
        self.run.store(place, core::sync::atomic::Ordering::Relaxed);
        let _end = End(self);
        run()
    }

    fn tell(&self, what: impl FnOnce(&mut Measured<'_>)) {
        let run = self.run.load(core::sync::atomic::Ordering::Relaxed);
        // SAFETY: null, or the place that `measure` stored, which lives until it stores null. The only
        // run is that of `measure`, whose C calls this function several times, one after the other.
        if let Some(measured) = unsafe { run.cast::<Measured<'_>>().as_mut() } {
            what(measured);
        }
    }

    pub(crate) fn begins(&self) {
        self.tell(|measured| measured.start = measured.clock.now());
    }

    pub(crate) fn ended(&self, name: &'static str) {
        self.tell(|measured| {
            let ticks = measured.clock.since(measured.start);
            measured.profiler.ended(::tfp_embedded::Call {
                name,
                index: Some(measured.calls),
                ticks,
            });
            measured.calls += 1;
        });
    }
}
