kernel void fill(device float* x [[buffer(0)]],
                 uint i [[thread_position_in_grid]]) {
  x[i] = 3.0f;
}
