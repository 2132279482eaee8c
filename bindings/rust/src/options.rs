// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

//! Options, whose defaults are those of C.

use crate::sys;
use crate::values::*;

macro_rules! options {
    ($(#[$doc:meta])* $name:ident = $raw:ident {
        $($(#[$of:meta])* $field:ident: $type:ty = $default:expr),* $(,)?
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name { $($(#[$of])* pub $field: $type),* }
        impl Default for $name {
            fn default() -> Self { $name { $($field: $default),* } }
        }
        impl Raw for $name {
            type C = sys::$raw;
            fn to_c(self) -> Self::C {
                sys::$raw {
                    size: sys::size_of::<sys::$raw>(),
                    $($field: self.$field.to_c()),*
                }
            }
            fn from_c(c: Self::C) -> Option<Self> {
                Some($name { $($field: Raw::from_c(c.$field)?),* })
            }
        }
        #[cfg(test)]
        impl $name {
            /// Names and bits of the defaults in C.
            fn bits() -> (&'static str, Vec<(&'static str, u64)>) {
                let c = $name::default().to_c();
                (stringify!($raw), vec![$((stringify!($field), tests::Bits::bits(&c.$field))),*])
            }
        }
    };
}
options! {
    /// Options of `route_top_k`.
    RouteOptions = swy_route_options {
        /// Divide the selected weights by their sum.
        renormalize: bool = true,
        /// Lower bound of that sum, as a share of the sum over all experts.
        clamp: f32 = 1.0 / 16384.0,
        /// How a logit becomes a score.
        score: Score = Score::Softmax,
        /// The divisor of `renormalize`.
        divisor: Divisor = Divisor::MaxOfSumAndShare,
        /// The eps of the divisors that have one.
        eps: f32 = 0.0,
        /// Weights are 0, not infinite or NaN, if the divisor is 0.
        zero_sum_is_zero: bool = false,
        /// The value that a weight is made of.
        weight_of: WeightOf = WeightOf::Score,
        /// The value that the correction bias is added to.
        bias_place: BiasPlace = BiasPlace::Score,
        /// The correction bias is part of the weight, too.
        bias_in_weight: bool = false,
        /// Select by the score as rounded, which PyTorch code does.
        select_on_rounded_score: bool = false,
        /// Multiplies weights after the division.
        routed_scaling_factor: f32 = 1.0,
        /// Multiplies logits.
        logit_scale: f32 = 1.0,
        /// Soft cap of logits; 0: none.
        logit_softcap: f32 = 0.0,
        /// Largest magnitude of a logit; 0: none.
        logit_clip: f32 = 0.0,
        /// Groups of experts; 0 or 1: none.
        num_expert_group: usize = 0,
        /// Groups that take part.
        topk_group: usize = 0,
        /// How many keys make a group's score.
        group_score_of: usize = 2,
        /// The key of a dropped group's experts is 0, not -inf.
        dropped_key_is_zero: bool = false,
        /// How many of the last experts compute nothing.
        num_zero_experts: usize = 0,
        /// How many experts every token has, in the last slots.
        num_shared_experts: usize = 0,
        /// The weight of those.
        shared_weight: f32 = 1.0,
        /// The shared experts have logits, instead of that weight.
        shared_logits: bool = false,
        /// The type that each step is rounded to.
        round_to: Type = Type::F32,
        /// The jitter of the sparsemixer.
        jitter_eps: f32 = 0.01,
        /// Presets set these: a call without correction_bias is refused.
        needs_correction_bias: bool = false,
        /// A call without expert_scale is refused.
        needs_expert_scale: bool = false,
        /// A num_expert_group of 0 is refused.
        needs_groups: bool = false,
        /// The preset has not seen its config.json: all calls are refused.
        needs_config: bool = false,
    }
}
options! {
    /// Options of `bucket_packed` and `bucket_strided`.
    BucketOptions = swy_bucket_options {
        /// The order inside a bucket.
        order: BucketOrder = BucketOrder::Ascending,
        /// Ids of no expert are expected.
        allow_dropped: bool = false,
    }
}
options! {
    /// Options of `bucket_aligned`.
    AlignedOptions = swy_aligned_options {
        /// Buckets begin at multiples of it.
        block_size: usize = 1,
        /// Pairs that an expert keeps.
        capacity: usize = sys::SWY_NO_CAPACITY,
        /// Write what is left of pairs and block_experts.
        fill_unused: bool = false,
        /// Ids of no expert are expected.
        allow_dropped: bool = false,
    }
}
options! {
    /// How a GEMM tiles its output.
    DispatchOptions = swy_dispatch_options {
        /// Pairs.
        tile_pairs: u32 = 32,
        /// Output features.
        tile_features: u32 = 64,
    }
}
options! {
    /// Options of `map_pairs`.
    MapOptions = swy_map_options {
        /// Pairs without a destination are expected.
        allow_dropped: bool = false,
        /// In place of a table: ids in `[d * n, (d + 1) * n)` live at destination d.
        experts_per_destination: usize = 0,
        /// Elements that are sent for a row.
        row_elements: usize = 1,
    }
}
options! {
    /// Options of `make_work_list`. A tile costs tile_cost + row_cost * max(rows,
    /// min_rows).
    WorkListOptions = swy_work_list_options {
        /// Threads that claim.
        workers: usize = 1,
        /// Tiles begin at multiples of these.
        tile_rows: usize = 16,
        /// Fewer take as long.
        min_rows: usize = 0,
        /// The cost of a tile, whatever its rows.
        tile_cost: usize = 0,
        /// The cost of a row.
        row_cost: usize = 1,
    }
}
options! {
    /// How rows are gathered.
    GatherOptions = swy_gather_options {
        /// Pairs that do not exist are expected, and make zeros.
        allow_invalid: bool = false,
    }
}
options! {
    /// How rows are scattered.
    ScatterOptions = swy_scatter_options {
        /// Rows that do not exist are expected, and make zeros.
        allow_skipped: bool = false,
    }
}
options! {
    /// Options of `activate`.
    ActivateOptions = swy_activate_options {
        /// The function.
        activation: Activation = Activation::Silu,
        /// The layout of gate and up.
        layout: GateUpLayout = GateUpLayout::Split,
        /// How it is stored.
        stores: ActivateStores = ActivateStores::Auto,
        /// A parameter of SwigluOai.
        alpha: f32 = 1.702,
        /// A parameter of Situ.
        beta: f32 = 4.0,
        /// A parameter of Situ.
        linear_beta: f32 = 25.0,
        /// Clamps gate and up; 0: none.
        limit: f32 = 0.0,
        /// Whether gate and up are clamped, or the result.
        limit_place: ActivatePlace = ActivatePlace::Before,
        /// Whether row_scale multiplies gate and up, or the result.
        row_scale_place: ActivatePlace = ActivatePlace::After,
        /// Round where separate operations do.
        round_like_unfused: bool = false,
    }
}
options! {
    /// Options of `combine`.
    CombineOptions = swy_combine_options {
        /// The eps of normed.
        eps: f32 = 1e-6,
        /// Rows that do not exist are expected, and skipped.
        allow_skipped: bool = false,
        /// Round where separate operations do.
        round_like_unfused: bool = false,
        /// How normed uses its weight.
        norm: NormKind = NormKind::Weight,
        /// How the norms before the residual use their weights.
        block_norm: NormKind = NormKind::Weight,
        /// The eps of the norms before the residual.
        block_eps: f32 = 1e-6,
        /// Factors.
        scales: CombineScales = CombineScales { routed: 1.0, block: 1.0, residual: 1.0, out: 1.0 },
    }
}
options! {
    /// Options of `hyper_connect`.
    HyperOptions = swy_hyper_options {
        /// Residual streams of a token; has to be set.
        num_streams: usize = 0,
        /// The eps of the norms.
        eps: f32 = 1e-6,
        /// The factor from stream j to i is `comb[t, i * n + j]`, else `comb[t, j * n + i]`.
        comb_by_row: bool = false,
        /// The norm multiplies by 1 + norm_weight.
        norm_plus_one: bool = false,
        /// Round where separate operations do.
        round_like_unfused: bool = false,
    }
}

options! {
    /// Inputs of `combine` that a family's layer has, and the place of its weights.
    CombineForm = swy_combine_form {
        /// If not, the residual is added elsewhere.
        has_residual: bool = true,
        /// 0: none.
        num_shared_experts: usize = 0,
        /// How their output is weighted.
        shared_gate: SharedGate = SharedGate::None,
        /// `CombineInputs::identity`.
        has_identity_experts: bool = false,
        /// `BlockNorms::routed`.
        has_routed_norm: bool = false,
        /// `BlockNorms::shared`.
        has_shared_norm: bool = false,
        /// `BlockNorms::block`.
        has_block_norm: bool = false,
        /// Some of `CombineVectors`.
        has_vectors: bool = false,
        /// `ActivateInputs::gate_bias`, and a bias of the down product.
        has_expert_biases: bool = false,
        /// topk_weights are `ActivateInputs::row_scale`, and those of `combine` are 1.
        has_weights_on_input: bool = false,
    }
}

options! {
    /// Options of `plan_experts`; num_experts, hidden and intermediate have to be set.
    /// The products of an expert's m rows cost weight_cost + row_cost * max(m,
    /// min_rows).
    ExpertsPlanOptions = swy_experts_plan_options {
        /// Ids of no expert are expected.
        allow_dropped: bool = false,
        /// Experts that there are here.
        num_experts: usize = 0,
        /// Columns of a token.
        hidden: usize = 0,
        /// Columns between an expert's products.
        intermediate: usize = 0,
        /// The same of a shared expert; 0: there is none.
        shared_intermediate: usize = 0,
        /// Threads that claim tiles.
        workers: usize = 1,
        /// Tiles begin at multiples of so many rows of their expert.
        tile_rows: usize = 16,
        /// The same in columns; 0: a tile has all columns.
        tile_columns: usize = 32,
        /// The most rows of a tile.
        max_rows: usize = 256,
        /// The cost of reading an expert's weights.
        weight_cost: usize = 512,
        /// The cost of a row.
        row_cost: usize = 16,
        /// Fewer rows cost as much.
        min_rows: usize = 0,
        /// Less is not worth a tile of its own.
        least_cost: usize = 8,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    pub trait Bits {
        fn bits(&self) -> u64;
    }
    impl Bits for i32 {
        fn bits(&self) -> u64 {
            *self as u64
        }
    }
    impl Bits for u32 {
        fn bits(&self) -> u64 {
            (*self).into()
        }
    }
    impl Bits for usize {
        fn bits(&self) -> u64 {
            *self as u64
        }
    }
    impl Bits for f32 {
        fn bits(&self) -> u64 {
            self.to_bits().into()
        }
    }
    impl Bits for sys::swy_combine_scales {
        fn bits(&self) -> u64 {
            u64::MAX // compared by its own fields
        }
    }

    #[test]
    fn defaults_are_those_of_c() {
        let layout = include_str!("../../../tests/c/layout.txt");
        let all = [
            RouteOptions::bits(),
            BucketOptions::bits(),
            AlignedOptions::bits(),
            DispatchOptions::bits(),
            MapOptions::bits(),
            WorkListOptions::bits(),
            GatherOptions::bits(),
            ScatterOptions::bits(),
            ActivateOptions::bits(),
            CombineOptions::bits(),
            HyperOptions::bits(),
            CombineForm::bits(),
            ExpertsPlanOptions::bits(),
        ];
        for (name, fields) in &all {
            let start = layout.find(&format!("\n{} ", name)).expect(name) + 1;
            let mut compared = 0;
            for line in layout[start..].lines().skip(1).take_while(|l| l.starts_with(' ')) {
                let words: Vec<&str> = line.split_whitespace().collect();
                if words[0] == "size" {
                    continue;
                }
                let (_, bits) = fields.iter().find(|(field, _)| *field == words[0]).expect(line);
                compared += 1;
                match words.get(3) {
                    Some(&"max") => assert_eq!(*bits, usize::MAX as u64, "{}", line),
                    Some(hex) if hex.starts_with("0x") => {
                        let wanted = u64::from_str_radix(&hex[2..], 16).unwrap();
                        assert_eq!(*bits, wanted, "{}: {}", name, line);
                    }
                    Some(number) => {
                        assert_eq!(*bits, number.parse::<u64>().unwrap(), "{}: {}", name, line)
                    }
                    None => assert_eq!(words[0], "scales"),
                }
            }
            assert_eq!(compared, fields.len(), "{}", name);
        }
        let scales = CombineOptions::default().scales;
        assert_eq!([scales.routed, scales.block, scales.residual, scales.out], [1.0; 4]);
    }
}
