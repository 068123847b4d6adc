// Batch norms: numbers of the channels, values, and the gradient.

struct Words {
    count: u32,
    channels: u32,
    /// Elements of a channel.
    elements: f32,
    epsilon: f32,
    /// The share of the batch in running statistics.
    share: f32,
}

var<immediate> words: Words;

// 0: statistics; 1: values; 2: gradients of scale and offset; 3: gradient of the values.
var<private> kind: u32 = 0xC0DE0000u;
// Whether the batch's own statistics count.
var<private> training: u32 = 0xC0DE0001u;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> slope: array<f32>;
@group(0) @binding(2) var<storage, read> scale: array<f32>;
@group(0) @binding(3) var<storage, read> offset: array<f32>;
@group(0) @binding(4) var<storage, read> mean: array<f32>;
@group(0) @binding(5) var<storage, read> variance: array<f32>;
/// Two sums per channel, those of the slopes first.
@group(0) @binding(6) var<storage, read> sums: array<f32>;
@group(0) @binding(7) var<storage, read> running_mean: array<f32>;
@group(0) @binding(8) var<storage, read> running_variance: array<f32>;
@group(0) @binding(9) var<storage, read_write> output: array<f32>;
@group(0) @binding(10) var<storage, read_write> first: array<f32>;
@group(0) @binding(11) var<storage, read_write> second: array<f32>;
@group(0) @binding(12) var<storage, read_write> third: array<f32>;

/// What a number per channel becomes; without an old one it is not read.
fn blend(batch: f32, old: f32) -> f32 {
    return old * (1.0 - words.share) + batch * words.share;
}

fn statistics(channel: u32) {
    if (training == 0u) {
        output[channel] = mean[channel];
        first[channel] = variance[channel];
    } else {
        let unbiased = variance[channel] * (words.elements / max(words.elements - 1.0, 1.0));
        if (words.share == 1.0) {
            output[channel] = mean[channel];
            first[channel] = unbiased;
        } else {
            output[channel] = blend(mean[channel], running_mean[channel]);
            first[channel] = blend(unbiased, running_variance[channel]);
        }
    }
    second[channel] = mean[channel];
    third[channel] = variance[channel];
}

@compute @workgroup_size(256)
fn main(
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
) {
    let index = (group.y * groups.x + group.x) * 256u + local;
    if (index >= words.count) {
        return;
    }
    let channel = index % words.channels;
    let squared = variance[channel] + words.epsilon;
    let root = 1.0 / sqrt(squared);
    switch kind {
        case 0u: {
            statistics(channel);
        }
        case 1u: {
            output[index] = (x[index] - mean[channel]) * (scale[channel] * root) + offset[channel];
        }
        case 2u: {
            output[channel] = sums[words.channels + channel] * root;
            first[channel] = sums[channel];
        }
        default: {
            var value = slope[index];
            if (training != 0u) {
                let level = sums[channel] / words.elements;
                let tilt = sums[words.channels + channel] / words.elements / squared;
                value = value - level - (x[index] - mean[channel]) * tilt;
            }
            output[index] = value * (scale[channel] * root);
        }
    }
}
