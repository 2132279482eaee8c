// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Enumerations, and values as C has them.

use crate::sys;

/// A value, and what it is in C.
pub(crate) trait Raw: Sized {
    type C;
    fn to_c(self) -> Self::C;
    /// None: a value of a newer library.
    fn from_c(c: Self::C) -> Option<Self>;
}
macro_rules! plain {
    ($($type:ty),*) => {$(
        impl Raw for $type {
            type C = $type;
            fn to_c(self) -> $type { self }
            fn from_c(c: $type) -> Option<$type> { Some(c) }
        }
    )*};
}
plain! { f32, u32, usize }
impl Raw for bool {
    type C = i32;
    fn to_c(self) -> i32 {
        self.into()
    }
    fn from_c(c: i32) -> Option<bool> {
        Some(c != 0)
    }
}

macro_rules! enumeration {
    ($(#[$doc:meta])* $name:ident { $($(#[$of:meta])* $member:ident = $c:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum $name { $($(#[$of])* $member = sys::$c),* }
        impl Raw for $name {
            type C = i32;
            fn to_c(self) -> i32 { self as i32 }
            fn from_c(c: i32) -> Option<$name> {
                match c { $(sys::$c => Some($name::$member),)* _ => None }
            }
        }
    };
}
enumeration! {
    /// Element types.
    Type {
        /// f32.
        F32 = SWY_F32,
        /// bfloat16.
        Bf16 = SWY_BF16,
        /// IEEE half.
        F16 = SWY_F16,
        /// i32.
        I32 = SWY_I32,
        /// u32.
        U32 = SWY_U32,
        /// i64.
        I64 = SWY_I64,
        /// i8.
        I8 = SWY_I8,
        /// u8.
        U8 = SWY_U8,
        /// fp8.
        F8E4M3 = SWY_F8E4M3,
        /// fp8.
        F8E5M2 = SWY_F8E5M2,
        /// Scales.
        E8M0 = SWY_E8M0,
        /// GGML's blocks.
        Q8_0 = SWY_Q8_0,
        /// GGML's blocks.
        Q8_1 = SWY_Q8_1,
        /// GGML's blocks.
        Q8K = SWY_Q8_K,
    }
}
enumeration! {
    /// How a logit becomes a score.
    Score {
        /// exp(logit) / sum over all experts.
        Softmax = SWY_SCORE_SOFTMAX,
        /// DeepSeek-V3, GLM, MiniMax.
        Sigmoid = SWY_SCORE_SIGMOID,
        /// DeepSeek-V4.
        SqrtSoftplus = SWY_SCORE_SQRT_SOFTPLUS,
        /// Granite, gpt-oss, Llama 4.
        Raw = SWY_SCORE_RAW,
        /// Phi-3.5-MoE.
        Sparsemixer = SWY_SCORE_SPARSEMIXER,
    }
}
enumeration! {
    /// The value that the correction bias is added to.
    BiasPlace {
        /// The score: most.
        Score = SWY_BIAS_ON_SCORE,
        /// The logit.
        Logit = SWY_BIAS_ON_LOGIT,
    }
}
enumeration! {
    /// The value that a selected expert's weight is made of.
    WeightOf {
        /// Its score.
        Score = SWY_WEIGHT_OF_SCORE,
        /// Granite, gpt-oss.
        SoftmaxOfSelected = SWY_WEIGHT_OF_SOFTMAX_OF_SELECTED,
        /// Llama 4.
        SigmoidOfSelected = SWY_WEIGHT_OF_SIGMOID_OF_SELECTED,
    }
}
enumeration! {
    /// The divisor of weights.
    Divisor {
        /// max(sum, clamp * sum over all).
        MaxOfSumAndShare = SWY_DIVISOR_MAX_OF_SUM_AND_SHARE,
        /// The sum.
        Sum = SWY_DIVISOR_SUM,
        /// sum + eps.
        SumPlusEps = SWY_DIVISOR_SUM_PLUS_EPS,
        /// max(sum, eps).
        MaxOfSumAndEps = SWY_DIVISOR_MAX_OF_SUM_AND_EPS,
    }
}
enumeration! {
    /// The order of pairs inside an expert's bucket.
    BucketOrder {
        /// Ascending pairs.
        Ascending = SWY_ORDER_ASCENDING,
        /// The order in which threads come: bits may differ between runs.
        Claim = SWY_ORDER_CLAIM,
    }
}
enumeration! {
    /// Functions of a gate g and an up u.
    Activation {
        /// silu(g) * u.
        Silu = SWY_SILU,
        /// gelu(g) * u.
        Gelu = SWY_GELU,
        /// The same with tanh.
        GeluTanh = SWY_GELU_TANH,
        /// max(g, 0) * u.
        Relu = SWY_RELU,
        /// max(g, 0)^2 * u.
        Relu2 = SWY_RELU2,
        /// g * u.
        Identity = SWY_IDENTITY,
        /// gpt-oss.
        SwigluOai = SWY_SWIGLU_OAI,
        /// Soft-capped SwiGLU.
        Situ = SWY_SITU,
    }
}
enumeration! {
    /// Layouts of gate and up values.
    GateUpLayout {
        /// In two matrices.
        Split = SWY_SPLIT,
        /// `[gate | up]`.
        Concatenated = SWY_CONCATENATED,
        /// gate, up, gate, up, ...
        Interleaved = SWY_INTERLEAVED,
        /// There is no up.
        Ungated = SWY_UNGATED,
    }
}
enumeration! {
    /// On which side of the activation something is done.
    ActivatePlace {
        /// To its arguments.
        Before = SWY_BEFORE,
        /// To its result.
        After = SWY_AFTER,
    }
}
enumeration! {
    /// Whether out goes through the caches.
    ActivateStores {
        /// Decided by the size.
        Auto = SWY_STORES_AUTO,
        /// Through them.
        Cached = SWY_STORES_CACHED,
        /// Past them.
        Streaming = SWY_STORES_STREAMING,
    }
}
enumeration! {
    /// How the shared expert's output is weighted.
    SharedGate {
        /// Weighted by sigmoid(gate).
        Logit = SWY_GATE_LOGIT,
        /// Weighted by gate.
        Scalar = SWY_GATE_SCALAR,
        /// Weighted by 1.
        None = SWY_GATE_NONE,
    }
}
enumeration! {
    /// How a norm uses its weight w.
    NormKind {
        /// (x * scale) * w.
        Weight = SWY_NORM_WEIGHT,
        /// The same, rounded once.
        WeightInF32 = SWY_NORM_WEIGHT_IN_F32,
        /// (x * scale) * (1 + w).
        PlusOne = SWY_NORM_PLUS_ONE,
        /// x * (1 + w), then * scale.
        PlusOneFirst = SWY_NORM_PLUS_ONE_FIRST,
    }
}

/// Factors of `combine`; 1 is none at all.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CombineScales {
    /// Multiplies the routed sum.
    pub routed: f32,
    /// Multiplies all experts' sum.
    pub block: f32,
    /// Multiplies the residual.
    pub residual: f32,
    /// Multiplies the result.
    pub out: f32,
}
impl Raw for CombineScales {
    type C = sys::swy_combine_scales;
    fn to_c(self) -> Self::C {
        sys::swy_combine_scales {
            routed: self.routed,
            block: self.block,
            residual: self.residual,
            out: self.out,
        }
    }
    fn from_c(c: Self::C) -> Option<Self> {
        Some(CombineScales { routed: c.routed, block: c.block, residual: c.residual, out: c.out })
    }
}
