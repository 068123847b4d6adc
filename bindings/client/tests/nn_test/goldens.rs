//! The tensors that Keras wrote, and comparison with them.

use std::env;

use tfp::{DataType, EagerContext, Error, Result, TensorHandle, ops};

/// The tensors of `keras_goldens.py`.
pub struct Goldens {
    pub eager: EagerContext,
    prefix: String,
}

impl Goldens {
    pub fn open() -> Result<Self> {
        let index = env::var("KERAS_GOLDENS")
            .map_err(|error| Error::argument(format!("KERAS_GOLDENS: {error}")))?;
        let prefix = index.strip_suffix(".index").unwrap_or(&index).to_owned();
        Ok(Self {
            eager: EagerContext::new()?,
            prefix,
        })
    }

    /// Reads a tensor.
    pub fn get_as(&self, name: &str, dtype: DataType) -> Result<TensorHandle> {
        let mut values =
            ops::restore_v2(&self.eager, self.prefix.as_str(), [name], [""], &[dtype])?;
        values
            .pop()
            .ok_or_else(|| Error::argument(format!("no tensor {name}")))
    }

    /// Reads a float32 tensor.
    pub fn get(&self, name: &str) -> Result<TensorHandle> {
        self.get_as(name, DataType::FLOAT)
    }

    /// Compares with a float32 tensor: the error is at most `tolerance` times the size of the value,
    /// or of one when it is smaller.
    pub fn check(&self, name: &str, found: &TensorHandle, tolerance: f32) -> Result<()> {
        let expected = self.get(name)?.to_tensor()?;
        let found = found.to_tensor()?;
        assert_eq!(found.dims(), expected.dims(), "{name}: shapes");
        let pairs = found
            .as_slice::<f32>()?
            .iter()
            .zip(expected.as_slice::<f32>()?);
        for (index, (found, expected)) in pairs.enumerate() {
            assert!(
                (found - expected).abs() <= tolerance * expected.abs().max(1.0),
                "{name}: element {index} is {found}, Keras has {expected}"
            );
        }
        Ok(())
    }
}

/// The context that layers are called in.
pub type Cx = EagerContext;

impl Goldens {
    /// Calls a function with a case's inputs and compares its value.
    pub fn call(
        &self,
        case: &str,
        names: &[&str],
        tolerance: f32,
        function: impl Fn(&Cx, &[TensorHandle]) -> Result<TensorHandle>,
    ) -> Result<()> {
        let inputs = names
            .iter()
            .map(|name| self.get(&format!("{case}/{name}")))
            .collect::<Result<Vec<_>>>()?;
        let y = function(&self.eager, &inputs)?;
        self.check(&format!("{case}/y"), &y, tolerance)
    }
}
