//! The tensors that Keras wrote, and comparison with them.

use std::env;

use tfp::{
    CheckpointReader, DataType, EagerContext, Error, GradientOptions, Result, Tape, Tensor,
    TensorHandle, Unconnected, ops,
};

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

    /// Reads a tensor of any type.
    pub fn read(&self, name: &str) -> Result<TensorHandle> {
        let tensor = CheckpointReader::open(&self.prefix)?.read(name)?;
        self.eager.handle(&tensor)
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

/// Checks that float32 tensors differ from others by less than `most` in each element.
pub fn near(found: &[Tensor], expected: &[Tensor], most: f32) -> Result<()> {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(found.dims(), expected.dims());
        let (found, expected) = (found.as_slice::<f32>()?, expected.as_slice::<f32>()?);
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < most, "{found} {expected}");
        }
    }
    Ok(())
}

/// The context that layers are called in.
pub type Cx = Tape;

impl Goldens {
    /// Calls a function with a case's inputs and compares its value and its gradients.
    pub fn call(
        &self,
        case: &str,
        names: &[&str],
        tolerance: f32,
        function: impl Fn(&Cx, &[TensorHandle]) -> Result<TensorHandle>,
    ) -> Result<()> {
        let inputs = names
            .iter()
            .map(|name| self.read(&format!("{case}/{name}")))
            .collect::<Result<Vec<_>>>()?;
        // Class numbers have no gradient.
        let sources: Vec<(&&str, &TensorHandle)> = names
            .iter()
            .zip(&inputs)
            .filter(|(_, input)| input.dtype() == DataType::FLOAT)
            .collect();
        let tape = Tape::new(&self.eager);
        for (_, input) in &sources {
            tape.watch(input)?;
        }
        let y = function(&tape, &inputs)?;
        self.check(&format!("{case}/y"), &y, tolerance)?;

        let weights = Some(self.get(&format!("{case}/weights"))?);
        let options = GradientOptions {
            grad_ys: std::slice::from_ref(&weights),
            unconnected: Unconnected::Zeros,
            ..GradientOptions::default()
        };
        let xs: Vec<&TensorHandle> = sources.iter().map(|(_, input)| *input).collect();
        let found = tape.gradients_with(&[&y], &xs, &options)?;
        for ((name, _), gradient) in sources.iter().zip(found) {
            let gradient = gradient.ok_or_else(|| Error::argument("no gradient"))?;
            let gradient = gradient.dense(&self.eager)?;
            self.check(&format!("{case}/d_{name}"), &gradient, 4.0 * tolerance)?;
        }
        Ok(())
    }
}
