//! Recurrent layers and attention of Keras, by class.

use tfp_core::{Error, Result};

use super::config::{Config, object};
use super::described::{Described, vars};
use super::names::{numbered, snake_case};
use crate::formats::json::Json;
use crate::nn::functional::RnnOptions;
use crate::nn::layer::{
    Attention, Bidirectional, ConvLstm, GroupedQueryAttention, Merge, MultiHeadAttention,
    Recurrent, RnnKind, Score, StackedRnn,
};

/// Describes a layer, if its class is of this kind.
pub(super) fn describe(
    class: &str,
    config: Config<'_>,
    is_causal: bool,
) -> Option<Result<Described>> {
    match class {
        "SimpleRNN" | "LSTM" | "GRU" => Some(recurrent(class, config).map(|layer| {
            let places = vars("cell/", 2 + usize::from(layer.use_bias));
            Described::at(Box::new(layer), places)
        })),
        "RNN" => Some(cells(config)),
        "ConvLSTM1D" | "ConvLSTM2D" | "ConvLSTM3D" => Some(conv_lstm(class, config)),
        "MultiHeadAttention" => Some(multi_head(config, is_causal)),
        "GroupQueryAttention" => Some(grouped(config, is_causal)),
        "Attention" | "AdditiveAttention" => Some(attention(class, config, is_causal)),
        _ => None,
    }
}

fn options(config: Config<'_>) -> Result<RnnOptions> {
    if config.flag("stateful") {
        return Err(Config::unsupported("stateful"));
    }
    Ok(RnnOptions {
        return_sequences: config.flag("return_sequences"),
        go_backwards: config.flag("go_backwards"),
        zero_masked: config.flag("zero_output_for_mask"),
    })
}

/// A recurrent layer of a class.
pub(super) fn recurrent(class: &str, config: Config<'_>) -> Result<Recurrent> {
    let layer = cell(class, config)?;
    Ok(Recurrent {
        options: options(config)?,
        return_state: config.flag("return_state"),
        ..layer
    })
}

/// The cell of a class: that of a layer, or the cell itself.
fn cell(class: &str, config: Config<'_>) -> Result<Recurrent> {
    let kind = match class.trim_end_matches("Cell") {
        "SimpleRNN" => RnnKind::Simple,
        "LSTM" => RnnKind::Lstm,
        "GRU" => RnnKind::Gru,
        other => return Err(Config::unsupported(&format!("the cell {other}"))),
    };
    for key in ["dropout", "recurrent_dropout"] {
        if config.float_or_zero(key)? != 0.0 {
            return Err(Config::unsupported(key));
        }
    }
    let layer = Recurrent::new(kind, config.integer("units")?);
    let gate = match kind {
        RnnKind::Simple => layer.gate,
        RnnKind::Lstm | RnnKind::Gru => config.activation("recurrent_activation")?,
    };
    Ok(Recurrent {
        activation: config.activation("activation")?,
        gate,
        use_bias: config.flag("use_bias"),
        reset_after: config.flag("reset_after"),
        ..layer
    })
}

fn cells(config: Config<'_>) -> Result<Described> {
    if config.flag("return_state") {
        return Err(Config::unsupported("return_state of an RNN with cells"));
    }
    let (class, inner) = config.inner("cell")?;
    let mut places = Vec::new();
    let cells = if class == "StackedRNNCells" {
        let list = inner
            .0
            .get("cells")
            .and_then(Json::list)
            .unwrap_or_default();
        let mut cells = Vec::new();
        let mut names: Vec<String> = Vec::new();
        for json in list {
            let wrong = || Error::argument("a cell that is not an object of Keras");
            let (class, config) = object(json).ok_or_else(wrong)?;
            let cell = cell(class, config)?;
            let name = snake_case(class);
            let place = numbered(&name, &mut names);
            let count = 2 + usize::from(cell.use_bias);
            places.extend(vars(&format!("cell/cells/{place}/"), count));
            cells.push(cell);
        }
        cells
    } else {
        let cell = cell(class, inner)?;
        places = vars("cell/", 2 + usize::from(cell.use_bias));
        vec![cell]
    };
    let options = options(config)?;
    let layer = Box::new(StackedRnn { cells, options });
    Ok(Described::at(layer, places))
}

fn conv_lstm(class: &str, config: Config<'_>) -> Result<Described> {
    config.channels_last()?;
    let digit = class.chars().rev().find_map(|letter| letter.to_digit(10));
    let dims = digit.map_or(1, |digit| digit as usize);
    for key in ["dropout", "recurrent_dropout"] {
        if config.float_or_zero(key)? != 0.0 {
            return Err(Config::unsupported(key));
        }
    }
    if config.flag("return_state") {
        return Err(Config::unsupported("return_state of a ConvLSTM"));
    }
    let spread = config.sizes("dilation_rate", dims)?;
    if spread.iter().any(|&one| one != 1) {
        return Err(Config::unsupported("dilations of a ConvLSTM"));
    }
    let size = config.sizes("kernel_size", dims)?;
    let layer = ConvLstm {
        strides: config.sizes("strides", dims)?,
        padding: config.padding()?,
        options: options(config)?,
        activation: config.activation("activation")?,
        gate: config.activation("recurrent_activation")?,
        use_bias: config.flag("use_bias"),
        ..ConvLstm::new(config.integer("filters")?, &size)
    };
    let places = vars("cell/", 2 + usize::from(layer.use_bias));
    let layer = Box::new(layer);
    Ok(Described::at(layer, places))
}

/// The places of the four dense layers of attention.
fn dense_places(use_bias: bool) -> Vec<String> {
    let names = ["query", "key", "value", "output"];
    let count = 1 + usize::from(use_bias);
    let places = names
        .iter()
        .map(|name| vars(&format!("{name}_dense/"), count));
    places.flatten().collect()
}

fn multi_head(config: Config<'_>, causal: bool) -> Result<Described> {
    if config.has("attention_axes") && config.integers("attention_axes")? != [1] {
        return Err(Config::unsupported("attention_axes"));
    }
    if config.flag("use_gate") {
        return Err(Config::unsupported("use_gate"));
    }
    let width = config.integer("key_dim")?;
    let output = match config.has("output_shape") {
        false => None,
        true => match config.integers("output_shape")?.as_slice() {
            &[output] => Some(output),
            _ => return Err(Config::unsupported("an output shape of several sizes")),
        },
    };
    let use_bias = config.flag("use_bias");
    let layer = Box::new(MultiHeadAttention {
        value_width: match config.has("value_dim") {
            true => Some(config.integer("value_dim")?),
            false => None,
        },
        output,
        causal,
        use_bias,
        dropout: config.float_or_zero("dropout")?,
        ..MultiHeadAttention::new(config.integer("num_heads")?, width)
    });
    let places = dense_places(use_bias);
    Ok(Described::at(layer, places))
}

fn grouped(config: Config<'_>, causal: bool) -> Result<Described> {
    let drops = config.float_or_zero("dropout")? != 0.0;
    if drops || config.flag("use_gate") || config.has("sliding_window") {
        return Err(Config::unsupported("dropout, a gate or a sliding window"));
    }
    let use_bias = config.flag("use_bias");
    let layer = Box::new(GroupedQueryAttention {
        width: config.integer("head_dim")?,
        query_heads: config.integer("num_query_heads")?,
        key_heads: config.integer("num_key_value_heads")?,
        causal,
        use_bias,
    });
    let names = ["_query", "_key", "_value", "_output"];
    let count = 1 + usize::from(use_bias);
    let places = names
        .iter()
        .map(|name| vars(&format!("{name}_dense/"), count));
    let places = places.flatten().collect();
    Ok(Described::at(layer, places))
}

fn attention(class: &str, config: Config<'_>, causal: bool) -> Result<Described> {
    let score = match (class, config.0.get("score_mode").and_then(Json::text)) {
        ("AdditiveAttention", _) => Score::Additive,
        (_, None | Some("dot")) => Score::Dot,
        (_, Some("concat")) => Score::Concat,
        (_, Some(other)) => return Err(Config::unsupported(&format!("score mode '{other}'"))),
    };
    let use_scale = config.flag("use_scale");
    let layer = Attention {
        score,
        use_scale,
        causal,
        dropout: config.float_or_zero("dropout")?,
    };
    let count = usize::from(use_scale) + usize::from(score == Score::Concat);
    Described::own(layer, count)
}

/// Describes `Bidirectional`, whose two layers must be alike.
pub(super) fn bidirectional(config: Config<'_>) -> Result<Described> {
    let (class, inner) = config.inner("layer")?;
    let (other, backward) = config.inner("backward_layer")?;
    let ahead = recurrent(class, inner)?;
    let mut back = recurrent(other, backward)?;
    back.options.go_backwards = ahead.options.go_backwards;
    if back != ahead {
        return Err(Config::unsupported("a backward layer that differs"));
    }
    if ahead.return_state {
        return Err(Config::unsupported("return_state in both directions"));
    }
    let merge = match config.text("merge_mode")? {
        "concat" => Merge::Concat,
        "sum" => Merge::Sum,
        "mul" => Merge::Mul,
        "ave" => Merge::Average,
        other => return Err(Config::unsupported(&format!("merge mode '{other}'"))),
    };
    let count = 2 + usize::from(ahead.use_bias);
    let mut places = vars("forward_layer/cell/", count);
    places.extend(vars("backward_layer/cell/", count));
    let layer = Box::new(Bidirectional {
        layer: ahead,
        merge,
    });
    Ok(Described::at(layer, places))
}
