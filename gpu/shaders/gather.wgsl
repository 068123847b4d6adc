// Rows by number: a gather, the sum of the rows that lists name, or rows of the output that such rows change.

struct Words {
    count: u32,
    /// Elements of a row, in vectors.
    inner: u32,
    /// Numbers of a batch; rows before the axis within a batch; length of the axis; words of a number.
    numbers: u32,
    outer: u32,
    limit: u32,
    step: u32,
}

var<immediate> words: Words;

// 0: gather; 1: sums of lists, which begin at their first numbers. From 2 on lists change rows of the output, whose
// numbers follow the begins: 2: sum; 3: difference; 4: product; 5: smaller; 6: larger; 7: the last one. Then `outer` is 1,
// or 0 if one number changes all; `limit` counts the lists.
var<private> kind: u32 = 0xC0DE0000u;

@group(0) @binding(0) var<storage, read> input: array<$V>;
@group(0) @binding(1) var<storage, read> numbers: array<u32>;
@group(0) @binding(2) var<storage, read_write> output: array<$V>;

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
    let row = index / words.inner;
    let column = index % words.inner;
    if (kind == 1u) {
        var sum = $V(0.0);
        for (var at = numbers[row]; at < numbers[row + 1u]; at++) {
            sum += input[numbers[at] * words.inner + column];
        }
        output[index] = sum;
        return;
    }
    if (kind > 1u) {
        let place = numbers[words.limit + 1u + row] * words.inner + column;
        var value = output[place];
        for (var at = numbers[row]; at < numbers[row + 1u]; at++) {
            let change = input[(numbers[at] * words.inner + column) * words.outer];
            switch kind {
                case 2u: { value += change; }
                case 3u: { value -= change; }
                case 4u: { value *= change; }
                case 5u: { value = select(value, change, change < value); }
                case 6u: { value = select(value, change, value < change); }
                default: { value = change; }
            }
        }
        output[place] = value;
        return;
    }
    let before = row / words.numbers;
    let batch = before / words.outer;
    let number = numbers[(batch * words.numbers + row % words.numbers) * words.step];
    output[index] = input[(before * words.limit + number) * words.inner + column];
}
