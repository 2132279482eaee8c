// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

use crate::arguments::calls;
use crate::error::with_report;
use crate::values::Raw;
use crate::view::View;
use crate::{sys, Error, Pool, Report, RouteInputs, RouteOptions, RouteOutputs};

calls! {
    /// For each token the top_k experts with the largest keys, best first, and their
    /// weights. The smaller index wins ties; NaN ranks below all, and a row that has
    /// one gets weights NaN.
    route_top_k = swy_route_top_k(&RouteInputs<'_>, RouteOutputs<'_>, RouteOptions);
}
