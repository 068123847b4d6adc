//! Workers that train together, each with all variables.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tfp_core::{
    Code, Context, EagerContext, EagerOptions, Error, ErrorKind, Result, Tensor, TensorHandle,
    Value,
};

use super::cluster::{described, task_name, worker_error};
use super::config::TfConfig;
use super::meeting::{PROBE, ask_all, meet, not_met, peers, wait_for};
use super::packs::Packs;
use crate::context::any::{AnyContext, HOST};
use crate::context::value::AnyValue;
use crate::ops;
use crate::ops::{FinalOp, MergeOp};

/// The group of all workers, and the first number of its collective ops, as Python's
/// `MultiWorkerMirroredStrategy` has them.
const GROUP: i32 = 1;
const FIRST_KEY: i32 = 100;

/// How the tasks of a cluster meet, and how long they wait.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// How long a task waits at the start for all others, up to 5 seconds more.
    pub register: Duration,
    /// How long a worker may be silent before the others take it for dead.
    pub heartbeat: Duration,
    /// How long a collective op waits for the slowest worker, as one that saves a checkpoint, and how long an
    /// op on a task of a [`ParameterServer`](super::ParameterServer) may take.
    pub collective: Duration,
    /// How the eager context is made.
    pub eager: EagerOptions,
}

impl Default for ClusterOptions {
    fn default() -> Self {
        Self {
            register: Duration::from_secs(300),
            heartbeat: Duration::from_secs(10),
            collective: Duration::from_secs(600),
            eager: EagerOptions::default(),
        }
    }
}

/// What becomes of the values that all workers have of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reduction {
    /// Their sum.
    Sum,
    /// Their mean; of integers it is cut.
    Mean,
    /// The smallest of each element.
    Min,
    /// The largest of each element.
    Max,
}

impl Reduction {
    fn op(self) -> MergeOp {
        match self {
            // A mean is divided afterwards, as in Python: the final op must be the same on all workers.
            Self::Sum | Self::Mean => MergeOp::Add,
            Self::Min => MergeOp::Min,
            Self::Max => MergeOp::Max,
        }
    }
}

/// A worker of a data-parallel training: every worker has all variables and computes the gradients of its
/// part of a batch, and collective ops of TensorFlow bring them together.
///
/// Every worker must make the same calls in the same order, from one thread. After an error of kind
/// [`ErrorKind::Worker`] all further collective ops fail: start all processes again, and go on
/// from the last checkpoint. A clone is the same worker.
#[derive(Clone)]
pub struct MultiWorker {
    inner: Arc<Inner>,
}

struct Inner {
    config: TfConfig,
    context: EagerContext,
    // The context on this worker's CPU, which has the collective ops.
    place: EagerContext,
    rank: usize,
    count: usize,
    options: ClusterOptions,
    next: Mutex<i32>,
}

impl MultiWorker {
    /// Starts the server of this task, and waits for all others.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`], naming this task when another process has its address, or the tasks that
    /// did not come in time; [`ErrorKind::Argument`] for a task that is neither chief nor worker; and as
    /// for [`EagerContext::with_options`].
    pub fn connect(config: &TfConfig, options: &ClusterOptions) -> Result<Self> {
        let training = config.cluster().training();
        let own = (config.job(), config.index());
        let rank = training
            .iter()
            .position(|(job, index, _)| (*job, *index) == own);
        let Some(rank) = rank else {
            return Err(Error::argument(format!(
                "{} is not a chief or a worker, and trains with nobody",
                config.described()
            )));
        };
        let mut eager = options.eager.clone();
        let settings = config.collective_config(options.register, options.heartbeat);
        eager.config = eager.config.merge(&settings);
        let context = EagerContext::with_options(&eager)?;
        if training.len() > 1 {
            config.check_free()?;
            let late = Instant::now() + options.register;
            // TensorFlow waits for a leader that does not come much longer than it is told, and a leader for
            // others.
            if rank > 0 {
                wait_for(&training[..1], late)?;
            }
            meet(&context, config.server_def(eager.config.as_bytes()), late)
                .map_err(|error| not_met(config, &training, &error))?;
            if let Err(error) = wait_for(&peers(config), late) {
                // The end of a context waits for the tasks that don't come. Its server can't be stopped.
                std::mem::forget(context);
                return Err(error);
            }
        }
        let place = match training.len() {
            1 => context.clone(),
            _ => context.on_device(&format!("{}/device:CPU:0", task_name(own.0, own.1)))?,
        };
        let count = training.len();
        Ok(Self {
            inner: Arc::new(Inner {
                config: config.clone(),
                context,
                place,
                rank,
                count,
                options: options.clone(),
                next: Mutex::new(FIRST_KEY),
            }),
        })
    }

    /// Returns the context in which the variables of the training are made.
    #[must_use]
    pub fn context(&self) -> &EagerContext {
        &self.inner.context
    }

    /// Returns the cluster and which task this is.
    #[must_use]
    pub fn config(&self) -> &TfConfig {
        &self.inner.config
    }

    /// Returns the number of this worker among all, from 0 on; the chief has 0.
    #[must_use]
    pub fn rank(&self) -> usize {
        self.inner.rank
    }

    /// Returns the number of workers.
    #[must_use]
    pub fn count(&self) -> usize {
        self.inner.count
    }

    /// Whether this worker saves what all have trained.
    #[must_use]
    pub fn is_chief(&self) -> bool {
        self.inner.rank == 0
    }

    /// Brings the values of all workers together: each tensor has the same shape and type on all, and all
    /// get the same results, in the order of the values.
    ///
    /// # Errors
    /// [`ErrorKind::Worker`] when a worker is gone or too slow, [`ErrorKind::DType`] for a type that
    /// `CollectiveReduceV2` doesn't take, and what TensorFlow says.
    pub fn all_reduce(
        &self,
        values: &[TensorHandle],
        reduction: Reduction,
    ) -> Result<Vec<TensorHandle>> {
        if self.inner.count == 1 {
            return Ok(values.to_vec());
        }
        let mut tensors = Vec::with_capacity(values.len());
        for value in values {
            let dims = value.shape()?.dims().unwrap_or(&[]).to_vec();
            tensors.push((Value::dtype(value), dims));
        }
        let cx = &self.inner.place;
        Packs::of(tensors)?.reduce(cx, values, |_, whole| {
            let reduced = self.collective(1, |key| {
                let key = cx.constant(&Tensor::scalar(key)?)?;
                self.reduce(cx, whole, &key, reduction.op())
            })?;
            if reduction != Reduction::Mean {
                return Ok(reduced);
            }
            let (to, count) = (Value::dtype(&reduced), self.inner.count as i64);
            let count = ops::cast(cx, count, to, ops::CastOptions::default())?;
            ops::div(cx, &reduced, &count)
        })
    }

    /// Adds up values of all workers inside of a function that is traced. The first of its collective ops
    /// gets the number `first`, with which [`Self::collective`] calls the function.
    pub(crate) fn sum_traced(
        &self,
        cx: &AnyContext,
        packs: &Packs,
        values: &[AnyValue],
        first: &AnyValue,
    ) -> Result<Vec<AnyValue>> {
        let host = cx.on_device(HOST)?;
        packs.reduce(cx, values, |number, whole| {
            let key = ops::add_v2(&host, first, number as i32)?;
            self.reduce(&host, whole, &key, MergeOp::Add)
        })
    }

    /// Adds the collective op that reduces a tensor.
    fn reduce<C: Context>(
        &self,
        cx: &C,
        value: &C::Value,
        key: &C::Value,
        merge: MergeOp,
    ) -> Result<C::Value> {
        let options = ops::CollectiveReduceV2Options {
            communication_hint: Some("ring".into()),
            timeout_seconds: Some(self.inner.options.collective.as_secs_f32()),
            ..Default::default()
        };
        let (none, count): ([C::Value; 0], _) = ([], self.inner.count as i32);
        let last = FinalOp::Id;
        ops::collective_reduce_v2(cx, value, count, GROUP, key, &none, merge, last, options)
    }

    /// Gives all workers the chief's values; the others' values have the same shapes and types.
    ///
    /// # Errors
    /// As for [`Self::all_reduce`].
    pub fn broadcast(&self, values: &[TensorHandle]) -> Result<Vec<TensorHandle>> {
        if self.inner.count == 1 {
            return Ok(values.to_vec());
        }
        let cx = &self.inner.place;
        let group = self.inner.count as i32;
        let send = |value: &TensorHandle| {
            // TensorFlow's broadcast ends the process at a tensor without an element.
            if value.element_count()? == 0 {
                return Ok(value.clone());
            }
            let timeout = self.inner.options.collective.as_secs_f32();
            self.collective(1, |key| {
                if self.inner.rank == 0 {
                    let options = ops::CollectiveBcastSendV2Options {
                        communication_hint: Some("ring".into()),
                        timeout_seconds: Some(timeout),
                    };
                    ops::collective_bcast_send_v2(cx, value, group, GROUP, key, options)
                } else {
                    let options = ops::CollectiveBcastRecvV2Options {
                        communication_hint: Some("ring".into()),
                        timeout_seconds: Some(timeout),
                    };
                    let shape = value.shape()?;
                    let dims: Vec<i64> = shape.dims().unwrap_or(&[]).to_vec();
                    let dims = cx.constant(&Tensor::from_slice(&dims, &[dims.len() as i64])?)?;
                    let dtype = Value::dtype(value);
                    ops::collective_bcast_recv_v2(cx, group, GROUP, key, &dims, dtype, options)
                }
            })
        };
        values.iter().map(send).collect()
    }

    /// Waits until all workers are here.
    ///
    /// # Errors
    /// As for [`Self::all_reduce`].
    pub fn barrier(&self) -> Result<()> {
        let one = self.inner.place.constant(&Tensor::scalar(1_i32)?)?;
        self.all_reduce(&[one], Reduction::Sum).map(drop)
    }

    /// Whether something is true for any worker.
    ///
    /// # Errors
    /// As for [`Self::all_reduce`].
    pub fn any(&self, here: bool) -> Result<bool> {
        let here = self
            .inner
            .place
            .constant(&Tensor::scalar(i32::from(here))?)?;
        let all = self.all_reduce(&[here], Reduction::Max)?;
        match all.first() {
            Some(all) => Ok(all.to_tensor()?.to_scalar::<i32>()? != 0),
            None => Ok(false),
        }
    }

    /// Runs some collective ops, of which it gives the first its number; all workers count alike.
    pub(crate) fn collective<T>(
        &self,
        count: usize,
        run: impl FnOnce(i32) -> Result<T>,
    ) -> Result<T> {
        let next = self.inner.next.lock();
        let mut next = next.unwrap_or_else(PoisonError::into_inner);
        let key = *next;
        *next = next.wrapping_add(count as i32);
        run(key).map_err(|error| self.failed(error))
    }

    /// Names the workers that don't answer, and ends the collective ops of this one.
    #[cold]
    fn failed(&self, error: Error) -> Error {
        let code = error.code();
        let is_of_peers = matches!(
            code,
            Code::Unavailable
                | Code::DeadlineExceeded
                | Code::Aborted
                | Code::Cancelled
                | Code::FailedPrecondition
                | Code::Internal
                | Code::Unknown
        );
        if !is_of_peers || !matches!(error.kind(), ErrorKind::Status { .. }) {
            return error;
        }
        let config = &self.inner.config;
        let peers = peers(config);
        let context = &self.inner.context;
        let silent = ask_all(&peers, |(job, index, _)| {
            context.check_peer(&task_name(job, index), PROBE).is_ok()
        });
        let message = format!("collective ops have ended: {error}");
        // Peers that wait for this worker learn of it at once, where they can.
        let _ = context.abort_collective_ops(code, &message);
        let (worker, problem) = if silent.is_empty() {
            let all = peers.into_iter().map(described).collect::<Vec<_>>();
            (all.join(", "), "one of these workers failed or is too slow")
        } else {
            (silent.join(", "), "the worker is gone")
        };
        let advice = "start all workers again and go on from the last checkpoint";
        worker_error(worker, code, format!("{problem} ({error}); {advice}"))
    }
}

impl std::fmt::Debug for MultiWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Inner { rank, count, .. } = &*self.inner;
        write!(f, "MultiWorker {rank} of {count}")
    }
}
