//! Names in files of Keras.

/// Classes whose name in a configuration is another than in Python's code, by which weights are stored.
const EXPORTED: &[(&str, &str)] = &[("GroupQueryAttention", "GroupedQueryAttention")];

/// The name of a class as Keras writes it into files: `Conv2DTranspose` to `conv2d_transpose`.
pub(super) fn snake_case(class: &str) -> String {
    let known = EXPORTED.iter().find(|(exported, _)| *exported == class);
    let class = known.map_or(class, |(_, class)| class);
    let letters: Vec<char> = class.chars().filter(|one| one.is_alphanumeric()).collect();
    let is = |at: usize, test: fn(&char) -> bool| letters.get(at).is_some_and(test);
    let mut words = String::new();
    let mut at = 0;
    while at < letters.len() {
        words.push(letters[at]);
        let begins = |at| is(at, char::is_ascii_uppercase) && is(at + 1, char::is_ascii_lowercase);
        at += 1;
        if begins(at) {
            words.push('_');
            words.push(letters[at]);
            at += 1;
            while is(at, char::is_ascii_lowercase) {
                words.push(letters[at]);
                at += 1;
            }
        }
    }
    let mut snake = String::new();
    let mut before = ' ';
    for letter in words.chars() {
        if before.is_ascii_lowercase() && letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        before = letter;
    }
    snake
}

/// A name with the number of others of this name before it, as `dense`, `dense_1`.
pub(super) fn numbered(name: &str, before: &mut Vec<String>) -> String {
    let count = before.iter().filter(|other| *other == name).count();
    before.push(name.to_owned());
    match count {
        0 => name.to_owned(),
        _ => format!("{name}_{count}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn classes_have_the_names_of_keras() {
        for (class, name) in [
            ("Dense", "dense"),
            ("Conv2DTranspose", "conv2d_transpose"),
            ("DepthwiseConv1D", "depthwise_conv1d"),
            ("ConvLSTM2D", "conv_lstm2d"),
            ("PReLU", "p_re_lu"),
            ("GRUCell", "gru_cell"),
            ("RMSNormalization", "rms_normalization"),
            ("StackedRNNCells", "stacked_rnn_cells"),
        ] {
            assert_eq!(super::snake_case(class), name);
        }
    }
}
