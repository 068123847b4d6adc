//! Datasets by functions of elements, which are traced.

use tfp_core::{DataType, Error, Result, Shape, Value};

use super::dataset::{Dataset, place_of};
use super::source;
use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;
use crate::function::GraphFunction;
use crate::ops;

/// How many calls of a function run at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parallel {
    calls: i64,
    is_ordered: bool,
}

impl Parallel {
    /// As many as TensorFlow finds best.
    #[must_use]
    pub const fn auto() -> Self {
        Self {
            calls: -1,
            is_ordered: true,
        }
    }

    /// So many, at least one.
    #[must_use]
    pub fn of(calls: u32) -> Self {
        Self {
            calls: i64::from(calls.max(1)),
            is_ordered: true,
        }
    }

    /// An element comes as soon as it is there. Without this, elements keep their order.
    #[must_use]
    pub const fn unordered(self) -> Self {
        Self {
            is_ordered: false,
            ..self
        }
    }

    fn deterministic(self) -> &'static str {
        if self.is_ordered { "true" } else { "false" }
    }
}

/// What ops take besides a function: the values that it captured.
fn captures(cx: &AnyContext, function: &GraphFunction) -> Result<Vec<AnyValue>> {
    function.install(cx)?;
    function
        .captures()
        .iter()
        .map(|value| cx.from_any(value.clone()))
        .collect()
}

impl Dataset {
    /// Traces a function of an element.
    pub(super) fn traced(
        &self,
        name: &str,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    ) -> Result<(GraphFunction, Vec<AnyValue>)> {
        let function = GraphFunction::trace(self.place(), name, &self.signature(), body)?;
        let captured = captures(self.place(), &function)?;
        Ok((function, captured))
    }

    /// Applies a function to each element. Its arguments are the element's tensors, and its results
    /// those of the new one.
    ///
    /// # Errors
    /// What TensorFlow says, as for arguments of other types.
    pub fn map(&self, function: &GraphFunction) -> Result<Self> {
        let captured = captures(self.place(), function)?;
        let (types, shapes): (Vec<_>, Vec<_>) = function.results().iter().cloned().unzip();
        let made = ops::map_dataset(
            self.place(),
            self.value(),
            &captured,
            function.function(),
            &types,
            &shapes,
            ops::MapDatasetOptions::default(),
        )?;
        Ok(self.over(made, &types, &shapes).with_inputs(1))
    }

    /// Applies a closure to each element: it is traced once, as a function of the element's tensors.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn map_with(
        &self,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    ) -> Result<Self> {
        let (function, _) = self.traced("map", body)?;
        self.map(&function)
    }

    /// Applies a closure to several elements at the same time; it is traced once.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn parallel_map(
        &self,
        parallel: Parallel,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    ) -> Result<Self> {
        let (function, captured) = self.traced("parallel_map", body)?;
        let (types, shapes): (Vec<_>, Vec<_>) = function.results().iter().cloned().unzip();
        let options = ops::ParallelMapDatasetV2Options {
            deterministic: Some(parallel.deterministic().into()),
            preserve_cardinality: Some(true),
            ..Default::default()
        };
        let made = ops::parallel_map_dataset_v2(
            self.place(),
            self.value(),
            &captured,
            parallel.calls,
            function.function(),
            &types,
            &shapes,
            options,
        )?;
        Ok(self.over(made, &types, &shapes).with_inputs(1))
    }

    /// Applies a closure that also gets random seeds, int64 of shape (2), as the functions of
    /// [`image`](super::image) take them. Each element of each reading has others; equal seeds of the
    /// dataset give equal ones.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn map_with_seeds(
        &self,
        seed: i64,
        parallel: Parallel,
        body: impl FnOnce(&AnyContext, &[AnyValue], &AnyValue) -> Result<Vec<AnyValue>>,
    ) -> Result<Self> {
        let numbers = Self::random(self.place(), seed)?.batch(2, true)?;
        Self::zip(&[self, &numbers])?.parallel_map(parallel, |cx, both| match both {
            [element @ .., seeds] => body(cx, element, seeds),
            [] => Ok(Vec::new()),
        })
    }

    /// Leaves the elements for which a closure gives true, a bool scalar; it is traced once.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn filter(
        &self,
        keep: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<AnyValue>,
    ) -> Result<Self> {
        let (function, captured) =
            self.traced("filter", |cx, element| Ok(vec![keep(cx, element)?]))?;
        let options = ops::FilterDatasetOptions::default();
        let function = function.function();
        self.next(|cx, variant, types, shapes| {
            ops::filter_dataset(cx, variant, &captured, function, types, shapes, options)
        })
    }

    /// The elements before the first one for which a closure gives false, a bool scalar; it is traced
    /// once.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn take_while(
        &self,
        go_on: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<AnyValue>,
    ) -> Result<Self> {
        let (function, captured) =
            self.traced("take_while", |cx, element| Ok(vec![go_on(cx, element)?]))?;
        let options = ops::TakeWhileDatasetOptions::default();
        let function = function.function();
        self.next(|cx, variant, types, shapes| {
            ops::take_while_dataset(cx, variant, &captured, function, types, shapes, options)
        })
    }

    /// Makes a dataset of each element, by a closure that is traced once, and takes elements from
    /// `cycle` of them in turns, `block` at a time. With `cycle` 1 it takes one after the other.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn interleave(
        &self,
        cycle: i64,
        block: i64,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Self>,
    ) -> Result<Self> {
        self.interleaved(body, |cx, variant, captured, function, types, shapes| {
            let options = ops::InterleaveDatasetOptions::default();
            let function = function.function();
            ops::interleave_dataset(
                cx, variant, captured, cycle, block, function, types, shapes, options,
            )
        })
    }

    /// Does the same with several elements of the datasets computed at the same time.
    ///
    /// # Errors
    /// As for [`Self::interleave`].
    pub fn parallel_interleave(
        &self,
        cycle: i64,
        block: i64,
        parallel: Parallel,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Self>,
    ) -> Result<Self> {
        self.interleaved(body, |cx, variant, captured, function, types, shapes| {
            let options = ops::ParallelInterleaveDatasetV4Options {
                deterministic: Some(parallel.deterministic().into()),
                ..Default::default()
            };
            // TensorFlow chooses what is computed ahead.
            let (ahead, function) = (-1_i64, function.function());
            let calls = parallel.calls;
            ops::parallel_interleave_dataset_v4(
                cx, variant, captured, cycle, block, ahead, ahead, calls, function, types, shapes,
                options,
            )
        })
    }

    /// Makes a dataset of each element, by a closure that is traced once: their elements one after the
    /// other.
    ///
    /// # Errors
    /// Those of the closure, and what TensorFlow says.
    pub fn flat_map(
        &self,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Self>,
    ) -> Result<Self> {
        self.interleaved(body, |cx, variant, captured, function, types, shapes| {
            let options = ops::FlatMapDatasetOptions::default();
            let function = function.function();
            ops::flat_map_dataset(cx, variant, captured, function, types, shapes, options)
        })
    }

    fn interleaved(
        &self,
        body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Self>,
        make: impl FnOnce(
            &AnyContext,
            &AnyValue,
            &[AnyValue],
            &GraphFunction,
            &[DataType],
            &[Shape],
        ) -> Result<AnyValue>,
    ) -> Result<Self> {
        let mut inner = None;
        let (function, captured) = self.traced("interleave", |cx, element| {
            let made = body(cx, element)?;
            let variant = made.value().clone();
            inner = Some(made);
            Ok(vec![variant])
        })?;
        let inner = inner.ok_or_else(|| Error::argument("the closure made no dataset"))?;
        let (types, shapes) = (inner.types(), inner.shapes());
        let (cx, variant) = (self.place(), self.value());
        let made = make(cx, variant, &captured, &function, types, shapes)?;
        let origins = source::opened(self.origins(), inner.origins());
        let over = self.over(made, types, shapes).with_inputs(1);
        Ok(over.with_origins(origins))
    }
}

/// A dataset within a function that is traced: a window that an op passes to it.
pub(super) fn window(cx: &AnyContext, variant: &AnyValue, of: &Dataset) -> Dataset {
    Dataset::made(&place_of(cx), variant.clone(), of.types(), of.shapes())
}

/// A function of other arguments than an element's tensors.
pub(super) fn traced_of(
    cx: &AnyContext,
    name: &str,
    arguments: &[(DataType, Shape)],
    body: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
) -> Result<(GraphFunction, Vec<AnyValue>)> {
    let function = GraphFunction::trace(cx, name, arguments, body)?;
    let captured = captures(cx, &function)?;
    Ok((function, captured))
}

/// Whether a value is an int64 scalar, as far as that is known.
pub(super) fn is_number(value: &AnyValue) -> Result<bool> {
    let shape = Value::shape(value)?;
    Ok(value.dtype() == DataType::INT64 && shape.is_compatible_with(&Shape::scalar()))
}
