//! What is served: models with their queues, whatever interface asks for them.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use tokio::time::timeout_at;

use crate::array::Array;
use crate::batch::Batcher;
use crate::failure::{Failure, Status};
use crate::metrics::Metrics;
use crate::model::Model;
use crate::options::Options;
use crate::route::Target;

/// A model with its version and its queues.
pub(crate) struct Served {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) version: u64,
    batchers: BTreeMap<String, Batcher>,
}

/// A model that is served.
pub struct Offer {
    /// Its name in paths.
    pub name: String,
    /// Its version.
    pub version: u64,
    /// The model.
    pub model: Arc<dyn Model>,
}

/// What all connections share: the models, and what was counted.
pub(crate) struct App {
    pub(crate) options: Options,
    models: BTreeMap<String, Served>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) stopping: AtomicBool,
}

impl App {
    /// Makes a queue for each signature of the models.
    ///
    /// # Errors
    /// If the system has no thread left.
    pub(crate) fn new(options: Options, offers: Vec<Offer>) -> io::Result<Self> {
        let metrics = Arc::new(Metrics::default());
        let mut models = BTreeMap::new();
        for offer in offers {
            let mut batchers = BTreeMap::new();
            for (name, signature) in offer.model.signatures() {
                let (model, metrics) = (Arc::clone(&offer.model), Arc::clone(&metrics));
                let batcher = Batcher::new(model, name, signature, options.batch, metrics)?;
                batchers.insert(name.clone(), batcher);
            }
            let served = Served {
                model: offer.model,
                version: offer.version,
                batchers,
            };
            models.insert(offer.name, served);
        }
        Ok(Self {
            options,
            models,
            metrics,
            stopping: AtomicBool::new(false),
        })
    }

    /// Refuses requests that no model could answer now.
    ///
    /// # Errors
    /// [`Status::Unavailable`] while the server stops, and for a model that is lost.
    pub(crate) fn ready(&self) -> Result<(), Failure> {
        let unready = |what: String| Err(Failure::new(Status::Unavailable, what));
        if self.stopping.load(Ordering::Relaxed) {
            return unready("the server is stopping".to_owned());
        }
        let lost = self
            .models
            .iter()
            .find(|(_, served)| served.model.is_lost());
        lost.map_or(Ok(()), |(name, _)| {
            unready(format!("the model '{name}' is lost"))
        })
    }

    /// The model of a name, in a version.
    ///
    /// # Errors
    /// [`Status::NotFound`] for another name or version.
    pub(crate) fn served(&self, target: Target<'_>) -> Result<&Served, Failure> {
        let found = self.models.get(target.model);
        let is_version = |served: &&Served| target.version.is_none_or(|v| v == served.version);
        found.filter(is_version).ok_or_else(|| {
            let what = match target.version {
                Some(version) => format!("Specific({}, {version})", target.model),
                None => format!("Latest({})", target.model),
            };
            let message = format!("Servable not found for request: {what}");
            Failure::new(Status::NotFound, message)
        })
    }

    /// Puts arrays into the queue of a signature and waits for its results.
    pub(crate) async fn run(
        &self,
        served: &Served,
        signature: &str,
        arrays: Vec<Array>,
        deadline: Instant,
    ) -> Result<Vec<Array>, Failure> {
        let batcher = served
            .batchers
            .get(signature)
            .ok_or_else(|| Failure::new(Status::Internal, "a signature without a queue"))?;
        let outcome = batcher.submit(arrays, deadline)?;
        let late = || Failure::new(Status::Deadline, "the result was not there in time");
        let outcome = timeout_at(deadline.into(), outcome).await;
        // A request whose time is over is dropped from the queue.
        outcome.map_err(|_| late())?.map_err(|_| late())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Signature;

    struct Lost(BTreeMap<String, Signature>);

    impl Model for Lost {
        fn signatures(&self) -> &BTreeMap<String, Signature> {
            &self.0
        }

        fn run(&self, _: &str, _: Vec<Array>, _: Instant) -> Result<Vec<Array>, Failure> {
            Err(Failure::new(Status::Unavailable, "it is lost"))
        }

        fn is_lost(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_server_with_a_lost_model_is_not_ready() {
        let offer = Offer {
            name: "m".to_owned(),
            version: 1,
            model: Arc::new(Lost(BTreeMap::new())),
        };
        let app = App::new(Options::default(), vec![offer]).unwrap();
        let failure = app.ready().unwrap_err();
        assert_eq!(failure.status, Status::Unavailable);
        assert_eq!(failure.message, "the model 'm' is lost");
        let app = App::new(Options::default(), Vec::new()).unwrap();
        assert_eq!(app.ready(), Ok(()));
    }
}
