//! Learning-rate schedules.

use std::f64::consts::PI;
use std::fmt;
use std::sync::Arc;

/// A learning rate per step, computed on the host. Steps begin with 0. Formulas and names are those
/// of Keras' `optimizers.schedules`.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Schedule {
    /// Always the same rate.
    Constant(f32),
    /// `initial * rate^(step / steps)`, in whole powers when it is a staircase.
    ExponentialDecay {
        /// The rate at step 0.
        initial: f32,
        /// The steps per power.
        steps: u64,
        /// The base.
        rate: f32,
        /// Whether the exponent is rounded down.
        staircase: bool,
    },
    /// `initial / (1 + rate * step / steps)`.
    InverseTimeDecay {
        /// The rate at step 0.
        initial: f32,
        /// The steps per unit of decay.
        steps: u64,
        /// The decay.
        rate: f32,
        /// Whether `step / steps` is rounded down.
        staircase: bool,
    },
    /// From `initial` to `end` along a power of the share of steps that are left.
    PolynomialDecay {
        /// The rate at step 0.
        initial: f32,
        /// The steps until the end.
        steps: u64,
        /// The rate at the end.
        end: f32,
        /// The power.
        power: f32,
        /// Whether it begins again, over a longer time, instead of staying at the end.
        cycle: bool,
    },
    /// The rate of the interval that the step is in: `values` has one more entry than `boundaries`,
    /// whose steps belong to the interval before them.
    PiecewiseConstant {
        /// The last step of each interval but the last one, ascending.
        boundaries: Vec<u64>,
        /// The rates.
        values: Vec<f32>,
    },
    /// Half a cosine wave, after an optional linear warm-up (Loshchilov and Hutter, arXiv:1608.03983).
    CosineDecay {
        /// The rate at step 0.
        initial: f32,
        /// The steps of the decay.
        steps: u64,
        /// The share of the rate that is left at the end.
        alpha: f32,
        /// The rate at the end of the warm-up and its steps.
        warmup: Option<(f32, u64)>,
    },
    /// Half a cosine wave, again and again.
    CosineDecayRestarts {
        /// The rate at step 0.
        initial: f32,
        /// The steps of the first period.
        steps: u64,
        /// How much longer each period is than the one before it.
        t_mul: f32,
        /// How much higher each period begins than the one before it.
        m_mul: f32,
        /// The share of the rate that is left at the end of a period.
        alpha: f32,
    },
    /// A function of your own.
    Function(RateFunction),
}

/// A function from the number of a step, from 0 on, to its rate. Two are equal if they are clones of one.
#[derive(Clone)]
pub struct RateFunction(Arc<dyn Fn(u64) -> f32 + Send + Sync>);

impl fmt::Debug for RateFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RateFunction").finish_non_exhaustive()
    }
}

impl PartialEq for RateFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Schedule {
    /// A schedule of your own: a function from the number of a step, from 0 on, to its rate.
    pub fn function(rate: impl Fn(u64) -> f32 + Send + Sync + 'static) -> Self {
        Self::Function(RateFunction(Arc::new(rate)))
    }

    /// Returns the learning rate of a step.
    #[must_use]
    pub fn rate(&self, step: u64) -> f32 {
        let at = step as f64;
        let share = |steps: u64, staircase: bool| {
            let share = at / steps.max(1) as f64;
            if staircase { share.floor() } else { share }
        };
        let rate = match *self {
            Self::Constant(rate) => f64::from(rate),
            Self::Function(ref function) => return (function.0)(step),
            Self::ExponentialDecay {
                initial,
                steps,
                rate,
                staircase,
            } => f64::from(initial) * f64::from(rate).powf(share(steps, staircase)),
            Self::InverseTimeDecay {
                initial,
                steps,
                rate,
                staircase,
            } => f64::from(initial) / (1.0 + f64::from(rate) * share(steps, staircase)),
            Self::PolynomialDecay {
                initial,
                steps,
                end,
                power,
                cycle,
            } => {
                let mut total = steps.max(1) as f64;
                let mut at = at;
                if cycle {
                    total *= (at / total).ceil().max(1.0);
                } else {
                    at = at.min(total);
                }
                let left = (1.0 - at / total).powf(f64::from(power));
                (f64::from(initial) - f64::from(end)) * left + f64::from(end)
            }
            Self::PiecewiseConstant {
                ref boundaries,
                ref values,
            } => {
                let index = boundaries.partition_point(|&last| last < step);
                f64::from(values.get(index).or(values.last()).copied().unwrap_or(0.0))
            }
            Self::CosineDecay {
                initial,
                steps,
                alpha,
                warmup,
            } => {
                let (target, warmup) = warmup.unwrap_or((initial, 0));
                if step < warmup {
                    let done = at / warmup as f64;
                    (f64::from(target) - f64::from(initial)) * done + f64::from(initial)
                } else {
                    let done = (step - warmup).min(steps) as f64 / steps.max(1) as f64;
                    f64::from(target) * cosine(done, 1.0, alpha)
                }
            }
            Self::CosineDecayRestarts {
                initial,
                steps,
                t_mul,
                m_mul,
                alpha,
            } => {
                let t = f64::from(t_mul);
                let done = at / steps.max(1) as f64;
                let (period, done) = if t == 1.0 {
                    (done.floor(), done.fract())
                } else {
                    let period = ((1.0 - done * (1.0 - t)).ln() / t.ln()).floor();
                    let before = (1.0 - t.powf(period)) / (1.0 - t);
                    (period, (done - before) / t.powf(period))
                };
                f64::from(initial) * cosine(done, f64::from(m_mul).powf(period), alpha)
            }
        };
        rate as f32
    }
}

/// Half a cosine wave from `height` to `alpha`.
fn cosine(done: f64, height: f64, alpha: f32) -> f64 {
    let alpha = f64::from(alpha);
    (1.0 - alpha) * 0.5 * height * (1.0 + (PI * done).cos()) + alpha
}

impl From<f32> for Schedule {
    fn from(rate: f32) -> Self {
        Self::Constant(rate)
    }
}
