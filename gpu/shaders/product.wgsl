// Products of matrices, and convolutions as such: c = act(a b + bias + extra).
//
// A group of 16 x 16 threads makes a tile of c; a thread makes squares of 4 x 4, 64 apart. Slices of a and b go
// through one half of shared memory while the next ones are read, and written to the other half. What a and b are is a specialization constant:
// matrices, or what a convolution sees of its images.

struct Words {
    m: u32,
    n: u32,
    k: u32,
    // Elements from row to row.
    lda: u32,
    ldb: u32,
    // Depth of a split; as many splits follow each other along z.
    chunk: u32,
    splits: u32,
    // Products are numbered in two directions; elements from one to the next.
    inner: u32,
    a_outer: u32,
    a_inner: u32,
    b_outer: u32,
    b_inner: u32,
    alpha: f32,
    // A convolution: its image, its output, its filter.
    height: u32,
    width: u32,
    channels: u32,
    out_height: u32,
    out_width: u32,
    out_channels: u32,
    taps_x: u32,
    stride_y: u32,
    stride_x: u32,
    dilation_y: u32,
    dilation_x: u32,
    before_y: u32,
    before_x: u32,
}

var<immediate> words: Words;

// 0: rows of k; 1: rows of m; 2: an image, taps by channels; 3: a gradient, as its image sees it;
// 4: an image, for the gradient of a filter.
var<private> a_kind: u32 = 0xC0DE0000u;
// 0: rows of n; 1: rows of k; 2: a filter with input and output channels exchanged.
var<private> b_kind: u32 = 0xC0DE0001u;
// Whether whole vectors of a, b and c can be moved.
var<private> vectors: u32 = 0xC0DE0002u;
var<private> activation: u32 = 0xC0DE0003u;
// 1: a number per column is added; 2: a matrix is.
var<private> added: u32 = 0xC0DE0004u;

@group(0) @binding(0) var<storage, read> a4: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> a1: array<f32>;
@group(0) @binding(2) var<storage, read> b4: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read> b1: array<f32>;
@group(0) @binding(4) var<storage, read> bias: array<f32>;
@group(0) @binding(5) var<storage, read> extra: array<f32>;
@group(0) @binding(6) var<storage, read_write> c4: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> c1: array<f32>;

alias V = vec4<f32>;
alias W = vec4<bool>;
alias I = vec4<i32>;
alias U = vec4<u32>;

const NONE = 0xffffffffu;
const DEPTH = $Du;
// Vectors along the depth.
const ACROSS = DEPTH / 4u;
// A row of a tile in vectors, and one more: transposed stores then hit other banks.
const PITCH = 16u * $Hu + 1u;

var<workgroup> a_tile: array<vec4<f32>, 2u * DEPTH * PITCH>;
var<workgroup> b_tile: array<vec4<f32>, 2u * DEPTH * PITCH>;

/// What all elements of a row of a share.
fn row_of_a(m: u32) -> vec3<i32> {
    if (a_kind == 2u) {
        let pixel = words.out_height * words.out_width;
        let image = m / pixel;
        let rest = m % pixel;
        return vec3<i32>(
            i32(image * words.height * words.width * words.channels),
            i32((rest / words.out_width) * words.stride_y) - i32(words.before_y),
            i32((rest % words.out_width) * words.stride_x) - i32(words.before_x),
        );
    }
    if (a_kind == 3u) {
        let pixel = words.height * words.width;
        let image = m / pixel;
        let rest = m % pixel;
        return vec3<i32>(
            i32(image * words.out_height * words.out_width * words.out_channels),
            i32(rest / words.width + words.before_y),
            i32(rest % words.width + words.before_x),
        );
    }
    if (a_kind == 4u) {
        let tap = m / words.channels;
        return vec3<i32>(
            i32(m % words.channels),
            i32((tap / words.taps_x) * words.dilation_y) - i32(words.before_y),
            i32((tap % words.taps_x) * words.dilation_x) - i32(words.before_x),
        );
    }
    if (a_kind == 1u) {
        return vec3<i32>(i32(m), 0, 0);
    }
    return vec3<i32>(i32(m * words.lda), 0, 0);
}

/// The place of an element of a row; NONE where a convolution sees nothing.
fn place_in_a(row: vec3<i32>, k: u32) -> u32 {
    if (a_kind == 0u) {
        return u32(row.x) + k;
    }
    if (a_kind == 1u) {
        return k * words.lda + u32(row.x);
    }
    if (a_kind == 2u) {
        let tap = k / words.channels;
        let y = row.y + i32((tap / words.taps_x) * words.dilation_y);
        let x = row.z + i32((tap % words.taps_x) * words.dilation_x);
        let inside = u32(y) < words.height && u32(x) < words.width;
        let found = u32(row.x) + (u32(y) * words.width + u32(x)) * words.channels + k % words.channels;
        return select(NONE, found, inside);
    }
    if (a_kind == 3u) {
        let tap = k / words.out_channels;
        let y = row.y - i32((tap / words.taps_x) * words.dilation_y);
        let x = row.z - i32((tap % words.taps_x) * words.dilation_x);
        let oy = u32(y) / words.stride_y;
        let ox = u32(x) / words.stride_x;
        let inside = y >= 0 && x >= 0 && oy * words.stride_y == u32(y) && ox * words.stride_x == u32(x)
            && oy < words.out_height && ox < words.out_width;
        let found = u32(row.x) + (oy * words.out_width + ox) * words.out_channels + k % words.out_channels;
        return select(NONE, found, inside);
    }
    let pixel = words.out_height * words.out_width;
    let image = k / pixel;
    let rest = k % pixel;
    let y = row.y + i32((rest / words.out_width) * words.stride_y);
    let x = row.z + i32((rest % words.out_width) * words.stride_x);
    let inside = u32(y) < words.height && u32(x) < words.width;
    let found = ((image * words.height + u32(y)) * words.width + u32(x)) * words.channels + u32(row.x);
    return select(NONE, found, inside);
}

fn place_in_b(k: u32, n: u32) -> u32 {
    if (b_kind == 0u) {
        return k * words.ldb + n;
    }
    if (b_kind == 1u) {
        return n * words.ldb + k;
    }
    let tap = k / words.out_channels;
    return (tap * words.channels + n) * words.out_channels + k % words.out_channels;
}

fn a_number(base: u32, m: u32, k: u32, end: u32) -> f32 {
    if (m >= words.m || k >= end) {
        return 0.0;
    }
    let place = place_in_a(row_of_a(m), k);
    if (place == NONE) {
        return 0.0;
    }
    return a1[base + place];
}

fn b_number(base: u32, k: u32, n: u32, end: u32) -> f32 {
    if (n >= words.n || k >= end) {
        return 0.0;
    }
    return b1[base + place_in_b(k, n)];
}

/// Four elements of a row of a from k on, or four rows' from m on: whichever lie together.
fn a_vector(base: u32, row: vec3<i32>, m: u32, k: u32, end: u32) -> vec4<f32> {
    if ((vectors & 1u) == 0u) {
        if (a_kind == 1u || a_kind == 4u) {
            return vec4<f32>(
                a_number(base, m, k, end), a_number(base, m + 1u, k, end),
                a_number(base, m + 2u, k, end), a_number(base, m + 3u, k, end),
            );
        }
        return vec4<f32>(
            a_number(base, m, k, end), a_number(base, m, k + 1u, end),
            a_number(base, m, k + 2u, end), a_number(base, m, k + 3u, end),
        );
    }
    if (m >= words.m || k >= end) {
        return vec4<f32>();
    }
    let place = place_in_a(row, k);
    if (place == NONE) {
        return vec4<f32>();
    }
    return a4[(base + place) >> 2u];
}

fn b_vector(base: u32, k: u32, n: u32, end: u32) -> vec4<f32> {
    if ((vectors & 2u) == 0u) {
        if (b_kind == 0u) {
            return vec4<f32>(
                b_number(base, k, n, end), b_number(base, k, n + 1u, end),
                b_number(base, k, n + 2u, end), b_number(base, k, n + 3u, end),
            );
        }
        return vec4<f32>(
            b_number(base, k, n, end), b_number(base, k + 1u, n, end),
            b_number(base, k + 2u, n, end), b_number(base, k + 3u, n, end),
        );
    }
    if (n >= words.n || k >= end) {
        return vec4<f32>();
    }
    return b4[(base + place_in_b(k, n)) >> 2u];
}

/// Writes four elements of a row of c.
fn write(base: u32, m: u32, n: u32, sum: vec4<f32>) {
    if (m >= words.m || n >= words.n) {
        return;
    }
    let place = base + m * words.n + n;
    var value = sum;
    if ((vectors & 4u) != 0u) {
        if ((added & 1u) != 0u) {
            value += vec4<f32>(bias[n], bias[n + 1u], bias[n + 2u], bias[n + 3u]);
        }
        if ((added & 2u) != 0u) {
            value += vec4<f32>(extra[place], extra[place + 1u], extra[place + 2u], extra[place + 3u]);
        }
        c4[place >> 2u] = activate(value);
        return;
    }
#repeat j 4
    if (n + #ju < words.n) {
        if ((added & 1u) != 0u) {
            value[#j] += bias[n + #ju];
        }
        if ((added & 2u) != 0u) {
            value[#j] += extra[place + #ju];
        }
    }
#end
    value = activate(value);
#repeat j 4
    if (n + #ju < words.n) {
        c1[place + #ju] = value[#j];
    }
#end
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let split = group.z % words.splits;
    let product = group.z / words.splits;
    let a_base = (product / words.inner) * words.a_outer + (product % words.inner) * words.a_inner;
    let b_base = (product / words.inner) * words.b_outer + (product % words.inner) * words.b_inner;
    let c_base = group.z * words.m * words.n;
    let m0 = group.x * (64u * $Hu);
    let n0 = group.y * (64u * $Hu);
    let begin = split * words.chunk;
    let end = min(words.k, begin + words.chunk);
    // Which vectors of a slice the thread moves: along k, a few per row; along m or n, 16 H per line.
    let along_k = local / ACROSS;
    let at_k = (local % ACROSS) * 4u;
    let line = local / (16u * $Hu);
    let at_line = local % (16u * $Hu);
    let a_across = a_kind == 1u || a_kind == 4u;
#repeat i $L
    var am#i = m0 + along_k + (256u / ACROSS) * #iu;
    var ak#i = at_k;
    if (a_across) {
        am#i = m0 + at_line * 4u;
        ak#i = line + (16u / $Hu) * #iu;
    }
    let row#i = row_of_a(am#i);
    var bn#i = n0 + along_k + (256u / ACROSS) * #iu;
    var bk#i = at_k;
    if (b_kind == 0u) {
        bn#i = n0 + at_line * 4u;
        bk#i = line + (16u / $Hu) * #iu;
    }
    var a_next#i = a_vector(a_base, row#i, am#i, begin + ak#i, end);
    var b_next#i = b_vector(b_base, begin + bk#i, bn#i, end);
#end
    let ty = local >> 4u;
    let tx = local & 15u;
#repeat g $H
#repeat r 4
#repeat h $H
    var sum#g#r#h = vec4<f32>();
#end
#end
#end
    var half = 0u;
    for (var k0 = begin; k0 < end; k0 += DEPTH) {
        // Who is still at the slice before reads the other half.
#repeat i $L
        if (a_across) {
            a_tile[half + ak#i * PITCH + at_line] = a_next#i;
        } else {
            let at = along_k + (256u / ACROSS) * #iu;
            let component = at & 3u;
#repeat j 4
            a_tile[half + (ak#i + #ju) * PITCH + (at >> 2u)][component] = a_next#i[#j];
#end
        }
        if (b_kind == 0u) {
            b_tile[half + bk#i * PITCH + at_line] = b_next#i;
        } else {
            let at = along_k + (256u / ACROSS) * #iu;
            let component = at & 3u;
#repeat j 4
            b_tile[half + (bk#i + #ju) * PITCH + (at >> 2u)][component] = b_next#i[#j];
#end
        }
#end
        workgroupBarrier();
        let next = k0 + DEPTH;
        if (next < end) {
#repeat i $L
            a_next#i = a_vector(a_base, row#i, am#i, next + ak#i, end);
            b_next#i = b_vector(b_base, next + bk#i, bn#i, end);
#end
        }
#repeat d $D
        {
#repeat h $H
            let a#h = a_tile[half + #du * PITCH + ty + 16u * #hu];
            let b#h = b_tile[half + #du * PITCH + tx + 16u * #hu];
#end
#repeat g $H
#repeat r 4
#repeat h $H
            sum#g#r#h = fma(vec4<f32>(a#g[#r]), b#h, sum#g#r#h);
#end
#end
#end
        }
#end
        half = DEPTH * PITCH - half;
    }
#repeat g $H
#repeat r 4
#repeat h $H
    write(c_base, m0 + ty * 4u + 64u * #gu + #ru, n0 + tx * 4u + 64u * #hu, sum#g#r#h);
#end
#end
#end
}
