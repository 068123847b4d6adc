//! How shapes are timed, on one thread and on several.

use std::hint::black_box;
use std::time::{Duration, Instant};

use tfp_kernels::base::error::Result;
use tfp_kernels::base::level::level;
use tfp_kernels::base::parallel::{Parallel, Serial};
use tfp_kernels::base::threads::ThreadPool;
use tfp_kernels::simd::{Body, Simd, dispatch};

/// Multiplications and additions of registers.
struct Registers;

impl Body for Registers {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (x, y) = (s.splat(black_box(0.999)), s.splat(black_box(1e-6)));
        let mut sums = [s.splat(1.0); 12];
        for _ in 0..10_000 {
            for sum in &mut sums {
                *sum = s.mul_add(*sum, x, y);
            }
        }
        for sum in sums {
            black_box(s.sum(sum));
        }
    }
}

/// How shapes are timed.
pub struct Timer {
    pool: ThreadPool,
    rest: Duration,
    /// Ratios of one thread to several, of those shapes that had a core for each.
    ratios: Vec<f64>,
    /// Shapes that had not.
    crowded: usize,
}

impl Timer {
    /// The time in which calls of a shape alternate.
    const LONG: Duration = Duration::from_millis(60);
    /// Calls in a row.
    const CALLS: usize = 5;
    /// What several threads may lose: medians differ by as much from run to run.
    const NOISE: f64 = 0.95;
    /// The part of so many cores that threads have if each has its own.
    const OWN: f64 = 0.85;

    /// A timer of so many threads, with so long a rest between calls in a row.
    pub fn new(threads: usize, rest: Duration) -> Self {
        Self {
            pool: ThreadPool::new(threads),
            rest,
            ratios: Vec::new(),
            crowded: 0,
        }
    }

    /// How many times as fast as one the threads multiply.
    fn cores(&self) -> f64 {
        let mut times = [f64::INFINITY; 2];
        for _ in 0..5 {
            for (time, parallel) in times.iter_mut().zip([&Serial as &dyn Parallel, &self.pool]) {
                let start = Instant::now();
                parallel.run(self.pool.threads(), &|_| dispatch(level(), Registers));
                *time = time.min(start.elapsed().as_secs_f64());
            }
        }
        times[0] / times[1]
    }

    /// Times a shape, and prints what it takes.
    pub fn time(
        &mut self,
        name: &str,
        mut call: impl FnMut(&dyn Parallel) -> Result<()>,
    ) -> Result<()> {
        let mut times = [Vec::new(), Vec::new()];
        let before = self.cores();
        let begin = Instant::now();
        while begin.elapsed() < Self::LONG || times[0].len() < 2 * Self::CALLS {
            for (times, parallel) in times.iter_mut().zip([&Serial as &dyn Parallel, &self.pool]) {
                if self.rest.is_zero() {
                    // As in a model: what was called before has left its threads awake.
                    call(parallel)?;
                } else {
                    std::thread::sleep(self.rest);
                }
                for _ in 0..Self::CALLS {
                    let start = Instant::now();
                    call(parallel)?;
                    times.push(start.elapsed().as_secs_f64());
                }
            }
        }
        // Quartiles, because what else the machine does makes calls slower, never faster.
        let [one, many] = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            (times[times.len() / 4], times[times.len() / 2])
        });
        let (ratio, cores) = (one.0 / many.0, before.min(self.cores()));
        let own = cores >= Self::OWN * self.pool.threads() as f64;
        let mark = match (own, ratio < Self::NOISE) {
            (true, true) => "  slower",
            (false, _) => "  crowded",
            _ => "",
        };
        println!(
            "{name:44} {:10.2} us {:10.2} us {ratio:6.2} (medians {:5.2}), cores {cores:5.2}{mark}",
            one.0 * 1e6,
            many.0 * 1e6,
            one.1 / many.1
        );
        if own {
            self.ratios.push(ratio);
        } else {
            self.crowded += 1;
        }
        Ok(())
    }

    /// Prints what all shapes come to.
    pub fn summarize(&self) {
        let ratios = &self.ratios;
        let mean = ratios.iter().map(|r| r.ln()).sum::<f64>() / ratios.len().max(1) as f64;
        println!(
            "{} shapes, {} slower with {} threads, geometric mean {:.2}; {} more on fewer cores",
            ratios.len(),
            ratios.iter().filter(|r| **r < Self::NOISE).count(),
            self.pool.threads(),
            mean.exp(),
            self.crowded
        );
    }
}
