//! The shaders of the crate, as the compiler of shaders wrote them.

macro_rules! shaders {
    ($($(#[$doc:meta])* $name:ident $file:literal;)*) => {
        /// A compiled module.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Shader {
            $($(#[$doc])* $name,)*
        }

        impl Shader {
            fn bytes(self) -> &'static [u8] {
                match self {
                    $(Self::$name => include_bytes!(concat!("../shaders/spirv/", $file, ".spv")),)*
                }
            }
        }
    };
}

shaders! {
    /// Element-wise programs, element by element.
    Map1 "map1";
    /// Element-wise programs, four elements at a time.
    Map4 "map4";
    /// Products in tiles of 64 x 64.
    Product64 "product64";
    /// Products in tiles of 128 x 128.
    Product128 "product128";
    /// Sums the parts of a product.
    Fold "fold";
    /// Softmax and reductions of rows.
    Rows "rows";
    /// Reductions of a middle axis.
    Columns "columns";
    /// Moves elements.
    Move1 "move1";
    /// Moves four elements at a time.
    Move4 "move4";
    /// Pooling and its gradients.
    Pool "pool";
    /// Gathers rows, or sums them.
    Gather1 "gather1";
    /// The same, four elements at a time.
    Gather4 "gather4";
    /// Depthwise convolutions and their gradients.
    Depthwise "depthwise";
    /// Comparisons and choices.
    Mask "mask";
    /// Elements of another type.
    Cast "cast";
    /// Rows with one element that differs.
    OneHot "one_hot";
    /// Random numbers.
    Random "random";
    /// Batch norms.
    Norm "norm";
    /// What a device reaches.
    Peak "peak";
}

impl Shader {
    /// The words of the module.
    pub fn words(self) -> Vec<u32> {
        let chunks = self.bytes().as_chunks::<4>().0;
        chunks
            .iter()
            .map(|&bytes| u32::from_le_bytes(bytes))
            .collect()
    }
}
