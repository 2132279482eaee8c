// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// The probes, loops that only move bytes. probes.cc includes this file once per
// vector width. Before each include, it sets a target and a namespace, and
// defines PROBE_BYTES and PROBE_STREAM(pointer, vector).

typedef float V __attribute__((vector_size(PROBE_BYTES)));
constexpr size_t kLanes = PROBE_BYTES / sizeof(float);
constexpr size_t kLine = 64 / sizeof(float);
constexpr size_t kAhead = 1024 / sizeof(float);  // the prefetch distance
constexpr size_t kStreams = 8;

// Load and store at any address, because rows of quantised types can start
// anywhere. References to a type with reduced alignment do not work: Clang
// forgets a typedef's alignment when a function returns such a reference, and
// then writes aligned stores, which crashed.
inline V Load(const float* p) {
  V v;
  __builtin_memcpy(&v, p, sizeof(v));
  return v;
}
inline void Store(const V& v, float* p) { __builtin_memcpy(p, &v, sizeof(v)); }

void Move(const void* in, size_t in_size, void* out, size_t out_size) {
  const float* const from = static_cast<const float*>(in);
  V a = {}, b = {}, c = {}, d = {};
  size_t i = 0;
  for (; i + 4 * kLanes <= in_size; i += 4 * kLanes) {
    a += Load(from + i);
    b += Load(from + i + kLanes);
    c += Load(from + i + 2 * kLanes);
    d += Load(from + i + 3 * kLanes);
  }
  for (; i < in_size; i += kLanes) a += Load(from + i);
  const V sum = (a + b) + (c + d);
  for (size_t o = 0; o < out_size; o += kLanes) {
    Store(sum, static_cast<float*>(out) + o);
  }
}

void Divide(const float* gate, const float* up, float* out, size_t size) {
  for (size_t i = 0; i < size; i += kLine) {
    for (size_t l = 0; l < kLine; l += kLanes) {
      Store(Load(up + i + l) / Load(gate + i + l), out + i + l);
    }
  }
}

void DivideStreaming(const float* gate, const float* up, float* out,
                     size_t size) {
  for (size_t i = 0; i < size; i += kLine) {
    for (size_t l = 0; l < kLine; l += kLanes) {
      PROBE_STREAM(out + i + l, Load(up + i + l) / Load(gate + i + l));
    }
  }
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

inline const float* RowOf(const CombineMove& args, size_t token, size_t slot) {
  const size_t pair = token * kStreams + slot;
  const size_t row = args.row_index == nullptr
                         ? pair
                         : static_cast<size_t>(args.row_index[pair]);
  return args.rows + row * args.hidden;
}

template <bool kPrefetch>
inline void Sequential(const CombineMove& args) {
  for (size_t t = 0; t < args.tokens; ++t) {
    V a = {}, b = {}, c = {}, d = {};
    for (size_t s = 0; s < kStreams; ++s) {
      const float* const row = RowOf(args, t, s);
      size_t h = 0;
      for (; h + 4 * kLanes <= args.hidden; h += 4 * kLanes) {
        if (kPrefetch) {
          for (size_t l = 0; l < 4 * kLanes; l += kLine) {
            __builtin_prefetch(row + h + kAhead + l);
          }
        }
        a += Load(row + h);
        b += Load(row + h + kLanes);
        c += Load(row + h + 2 * kLanes);
        d += Load(row + h + 3 * kLanes);
      }
      for (; h < args.hidden; h += kLanes) a += Load(row + h);
    }
    const V sum = (a + b) + (c + d);
    const size_t at = t * args.hidden;
    for (size_t h = 0; h < args.hidden; h += kLanes) {
      Store(Load(args.residual + at + h) + sum, args.out + at + h);
      Store(Load(args.norm_weight + h) + sum, args.normed + at + h);
    }
  }
}

template <bool kPrefetch>
inline void Interleaved(const CombineMove& args) {
  for (size_t t = 0; t < args.tokens; ++t) {
    const float* rows[kStreams];
    for (size_t s = 0; s < kStreams; ++s) rows[s] = RowOf(args, t, s);
    const size_t at = t * args.hidden;
    for (size_t h = 0; h < args.hidden; h += kLine) {
      if (kPrefetch) {
        for (size_t s = 0; s < kStreams; ++s) {
          __builtin_prefetch(rows[s] + h + kAhead);
        }
        __builtin_prefetch(args.residual + at + h + kAhead);
      }
      for (size_t l = h; l < h + kLine; l += kLanes) {
        const V sum = ((Load(rows[0] + l) + Load(rows[1] + l)) +
                       (Load(rows[2] + l) + Load(rows[3] + l))) +
                      ((Load(rows[4] + l) + Load(rows[5] + l)) +
                       (Load(rows[6] + l) + Load(rows[7] + l)));
        Store(Load(args.residual + at + l) + sum, args.out + at + l);
        Store(Load(args.norm_weight + l) + sum, args.normed + at + l);
      }
    }
  }
}

void SequentialPlain(const CombineMove& args) { Sequential<false>(args); }
void SequentialPrefetch(const CombineMove& args) { Sequential<true>(args); }
void InterleavedPlain(const CombineMove& args) { Interleaved<false>(args); }
void InterleavedPrefetch(const CombineMove& args) { Interleaved<true>(args); }

constexpr Probes kProbes = {Move,
                            Divide,
                            DivideStreaming,
                            SequentialPlain,
                            SequentialPrefetch,
                            InterleavedPlain,
                            InterleavedPrefetch};
