//! Layers that move a window: convolutions and pooling.

use tfp_core::{Error, Result};

use crate::nn::functional::Pool;
use crate::nn::keras::config::Config;
use crate::nn::keras::described::Described;
use crate::nn::layer::{Built, Conv, Conv3d, GlobalPool, Layer, Pooling, Pooling3d, Reshape};
use crate::nn::{Initializer, Weights};

fn three(sizes: &[i64]) -> Result<[i64; 3]> {
    <[i64; 3]>::try_from(sizes).map_err(|_| Error::argument("expected three sizes"))
}

/// The first two sizes; one dimension has one.
pub(super) fn pair(sizes: &[i64]) -> (i64, i64) {
    let first = sizes.first().copied().unwrap_or(1);
    (first, sizes.get(1).copied().unwrap_or(first))
}

pub(super) fn kind(class: &str) -> Pool {
    match class.contains("Average") {
        true => Pool::Average,
        false => Pool::Max,
    }
}

pub(super) fn conv(config: Config<'_>, dims: usize) -> Result<Conv> {
    Ok(Conv {
        filters: config.integer("filters")?,
        size: pair(&config.sizes("kernel_size", dims)?),
        options: config.conv_options(dims)?,
        activation: config.activation("activation")?,
        use_bias: config.flag("use_bias"),
        kernel: Initializer::GLOROT_UNIFORM,
    })
}

pub(super) fn conv3d(config: Config<'_>) -> Result<Conv3d> {
    config.channels_last()?;
    let spread = config.sizes("dilation_rate", 3)?;
    let groups = if config.has("groups") {
        config.integer("groups")?
    } else {
        1
    };
    if groups != 1 || spread.iter().any(|&one| one != 1) {
        return Err(Config::unsupported(
            "a convolution of volumes with groups or dilations",
        ));
    }
    Ok(Conv3d {
        filters: config.integer("filters")?,
        size: three(&config.sizes("kernel_size", 3)?)?,
        strides: three(&config.sizes("strides", 3)?)?,
        padding: config.padding()?,
        activation: config.activation("activation")?,
        use_bias: config.flag("use_bias"),
    })
}

pub(super) fn pooling(class: &str, config: Config<'_>, dims: usize) -> Result<Described> {
    config.channels_last()?;
    let size = config.sizes("pool_size", dims)?;
    let strides = match config.has("strides") {
        true => config.sizes("strides", dims)?,
        false => size.clone(),
    };
    let (kind, padding) = (kind(class), config.padding()?);
    if dims == 3 {
        return Described::plain(Pooling3d {
            kind,
            size: three(&size)?,
            strides: three(&strides)?,
            padding,
        });
    }
    Described::plain(Pooling {
        kind,
        size: pair(&size),
        strides: pair(&strides),
        padding,
    })
}

/// Pools each channel to one number, and keeps dimensions of one where Keras does.
pub(super) struct Global {
    pub(super) kind: Pool,
    pub(super) keep: Option<usize>,
}

impl Layer for Global {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let pooled = GlobalPool(self.kind).build(weights, input)?;
        let Some(dims) = self.keep else {
            return Ok(pooled);
        };
        let shape = [vec![1; dims], pooled.output.clone()].concat();
        let reshaped = Reshape { shape }.build(weights, &pooled.output)?;
        let output = reshaped.output;
        let (first, second) = (pooled.forward, reshaped.forward);
        Ok(Built {
            output,
            forward: Box::new(move |pass, x| second(pass, &first(pass, x)?)),
        })
    }

    fn kind(&self) -> String {
        "GlobalPool".to_owned()
    }
}
