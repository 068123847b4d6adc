//! A model that is loaded anew after a run that has left it unusable.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::array::Array;
use crate::failure::{Failure, Status};
use crate::model::{Model, Signature};

/// How often a model is loaded anew: each one that is lost keeps its memory.
const LOADS: u32 = 8;
/// Between two attempts to load a model.
const PAUSE: Duration = Duration::from_secs(1);

type Load = dyn Fn() -> Result<Arc<dyn Model>, String> + Send + Sync;

/// A model that can be loaded again. While it is, its runs fail with [`Status::Unavailable`].
pub struct Renewed {
    signatures: BTreeMap<String, Signature>,
    shared: Arc<Shared>,
}

struct Shared {
    load: Box<Load>,
    pause: Duration,
    held: Mutex<Held>,
}

struct Held {
    model: Arc<dyn Model>,
    /// How often it may be loaded anew.
    left: u32,
    /// A thread loads it.
    is_loading: bool,
}

impl Renewed {
    /// Loads a model. What is loaded later has the same signatures.
    ///
    /// # Errors
    /// What `load` says.
    pub fn new(
        load: impl Fn() -> Result<Arc<dyn Model>, String> + Send + Sync + 'static,
    ) -> Result<Self, String> {
        Self::with(Box::new(load), LOADS, PAUSE)
    }

    fn with(load: Box<Load>, left: u32, pause: Duration) -> Result<Self, String> {
        let model = load()?;
        Ok(Self {
            signatures: model.signatures().clone(),
            shared: Arc::new(Shared {
                load,
                pause,
                held: Mutex::new(Held {
                    model,
                    left,
                    is_loading: false,
                }),
            }),
        })
    }
}

impl Model for Renewed {
    fn signatures(&self) -> &BTreeMap<String, Signature> {
        &self.signatures
    }

    fn run(
        &self,
        signature: &str,
        inputs: Vec<Array>,
        deadline: Instant,
    ) -> Result<Vec<Array>, Failure> {
        let model = Arc::clone(&self.shared.lock().model);
        if model.is_lost() {
            return Err(self.shared.renew(&model));
        }
        let outcome = model.run(signature, inputs, deadline);
        if !model.is_lost() {
            return outcome;
        }
        let failure = self.shared.renew(&model);
        match outcome {
            // Another thread's run has lost the model.
            Ok(outputs) => Ok(outputs),
            Err(cause) => Err(Failure::new(failure.status, format!("{cause}; {failure}"))),
        }
    }

    fn is_lost(&self) -> bool {
        self.shared.lock().model.is_lost()
    }
}

impl Shared {
    /// Nobody holds it while a model is loaded or runs.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has a lost model loaded anew, if nobody does so yet; says what becomes of it.
    fn renew(self: &Arc<Self>, lost: &Arc<dyn Model>) -> Failure {
        let mut held = self.lock();
        let is_new = !Arc::ptr_eq(&held.model, lost);
        if !is_new && !held.is_loading && held.left > 0 {
            let shared = Arc::downgrade(self);
            let thread = std::thread::Builder::new().name("load".to_owned());
            // Without a thread the next request tries again.
            held.is_loading = thread.spawn(move || Self::load(&shared)).is_ok();
        }
        let what = match is_new || held.is_loading || held.left > 0 {
            true => "the model is loaded anew: send the request again",
            false => "the model was lost too often: the server has to be started again",
        };
        Failure::new(Status::Unavailable, what)
    }

    /// Loads the model until that succeeds or nobody has it any more.
    fn load(shared: &Weak<Self>) {
        while let Some(shared) = shared.upgrade() {
            match (shared.load)() {
                Ok(model) => {
                    let mut held = shared.lock();
                    held.left -= 1;
                    held.is_loading = false;
                    let lost = std::mem::replace(&mut held.model, model);
                    drop(held);
                    drop(lost);
                    return;
                }
                Err(problem) => eprintln!("a model can't be loaded anew: {problem}"),
            }
            let pause = shared.pause;
            drop(shared);
            std::thread::sleep(pause);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::array::Data;
    use crate::model::Spec;

    /// Returns its input; is lost by 99.
    struct Fragile {
        signatures: BTreeMap<String, Signature>,
        is_lost: AtomicBool,
    }

    impl Fragile {
        fn new() -> Self {
            let spec = Spec {
                name: "x".into(),
                dtype: "DT_INT32".into(),
                dims: Some(vec![-1]),
                ..Spec::default()
            };
            let signature = Signature {
                inputs: vec![spec.clone()],
                outputs: vec![spec],
                ..Signature::default()
            };
            Self {
                signatures: [("serving_default".to_owned(), signature)].into(),
                is_lost: AtomicBool::new(false),
            }
        }
    }

    impl Model for Fragile {
        fn signatures(&self) -> &BTreeMap<String, Signature> {
            &self.signatures
        }

        fn run(&self, _: &str, inputs: Vec<Array>, _: Instant) -> Result<Vec<Array>, Failure> {
            assert!(!self.is_lost(), "a lost model runs");
            if inputs[0].data == Data::I32(vec![99]) {
                self.is_lost.store(true, Ordering::Relaxed);
                return Err(Failure::new(Status::Internal, "it threw"));
            }
            Ok(inputs)
        }

        fn is_lost(&self) -> bool {
            self.is_lost.load(Ordering::Relaxed)
        }
    }

    /// A model that 99 loses, and what tells how its next attempts to load end.
    pub(crate) fn renewed(left: u32) -> (Renewed, Sender<Result<(), String>>) {
        let (tell, told) = channel();
        let told = Mutex::new(told);
        tell.send(Ok(())).unwrap();
        let load = move || {
            let outcome: Result<(), String> = told.lock().unwrap().recv().unwrap();
            outcome.map(|()| Arc::new(Fragile::new()) as Arc<dyn Model>)
        };
        let model = Renewed::with(Box::new(load), left, Duration::ZERO).unwrap();
        (model, tell)
    }

    impl Renewed {
        /// Runs what loses the model.
        pub(crate) fn lose(&self) {
            run(self, 99).unwrap_err();
        }
    }

    fn number(number: i32) -> Vec<Array> {
        vec![Array::new(vec![1], Data::I32(vec![number])).unwrap()]
    }

    fn run(model: &Renewed, of: i32) -> Result<Vec<Array>, Failure> {
        model.run("f", number(of), Instant::now() + Duration::from_secs(60))
    }

    fn wait(model: &Renewed) {
        while model.is_lost() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_lost_model_is_loaded_anew_and_runs_again() {
        let (model, tell) = renewed(1);
        assert_eq!(run(&model, 7), Ok(number(7)));
        let failure = run(&model, 99).unwrap_err();
        assert_eq!(failure.status, Status::Unavailable);
        assert!(failure.message.starts_with("it threw; "), "{failure}");
        // Nothing runs until it is loaded.
        assert!(model.is_lost());
        assert_eq!(run(&model, 7).unwrap_err().status, Status::Unavailable);
        tell.send(Ok(())).unwrap();
        wait(&model);
        assert_eq!(run(&model, 7), Ok(number(7)));
    }

    #[test]
    fn loading_is_tried_until_it_succeeds() {
        let (model, tell) = renewed(1);
        run(&model, 99).unwrap_err();
        for outcome in [Err("no file".into()), Err("no file".into()), Ok(())] {
            assert!(model.is_lost());
            tell.send(outcome).unwrap();
        }
        wait(&model);
        assert_eq!(run(&model, 7), Ok(number(7)));
    }

    #[test]
    fn a_model_that_is_lost_too_often_stays_lost() {
        let (model, tell) = renewed(1);
        run(&model, 99).unwrap_err();
        tell.send(Ok(())).unwrap();
        wait(&model);
        let failure = run(&model, 99).unwrap_err();
        assert!(failure.message.contains("started again"), "{failure}");
        assert_eq!(run(&model, 7).unwrap_err().status, Status::Unavailable);
        assert!(model.is_lost());
    }
}
