// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Functions with which the lanes of a simdgroup copy between threadgroup and
// device memory. Each copy is complete at once, and a wait for copies is a
// simdgroup_barrier. Public shaders declare the functions below by the names
// of Metal's compiler, and define a simdgroup_event around them.

#ifndef SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ASYNC_COPY_H_
#define SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ASYNC_COPY_H_

#include "metal_simdgroup"
#include "metal_types"

struct _simdgroup_event_t;

namespace switchyard_metal {

// A copy of a tile. Sizes and strides count elements of `bytes` bytes.
struct TileCopy {
  u64 bytes;
  char* to;
  u64 to_row, to_step, to_width, to_height;
  const char* from;
  u64 from_row, from_step, from_width, from_height;
  long x, y;  // where the first element is in the source tile
  bool edge;  // true if elements outside repeat the edge; otherwise they are 0
};

// A lane's share of a copy: the lane's number among the `of` lanes that copy.
struct Share {
  u32 number, of;
};

SWITCHYARD_NOT_CHECKED inline void Divide(void* const* slots, u32 lanes,
                                          const void*) {
  u32 of = 0;
  for (u32 i = 0; i < lanes; ++i) {
    if (slots[i] != nullptr) static_cast<Share*>(slots[i])->number = of++;
  }
  for (u32 i = 0; i < lanes; ++i) {
    if (slots[i] != nullptr) static_cast<Share*>(slots[i])->of = of;
  }
}

SWITCHYARD_NOT_CHECKED inline long Clamped(long i, u64 size) {
  return i < 0                         ? 0
         : i < static_cast<long>(size) ? i
                                       : static_cast<long>(size) - 1;
}

SWITCHYARD_CALLED inline void CopyShare(const TileCopy& tile, Share share) {
  for (u64 i = share.number; i < tile.to_width * tile.to_height;
       i += share.of) {
    const u64 column = i % tile.to_width, row = i / tile.to_width;
    char* const to =
        tile.to + (row * tile.to_row + column * tile.to_step) * tile.bytes;
    const long x = static_cast<long>(column) + tile.x;
    const long y = static_cast<long>(row) + tile.y;
    const long in_x = Clamped(x, tile.from_width);
    const long in_y = Clamped(y, tile.from_height);
    const bool inside = tile.edge
                            ? tile.from_width != 0 && tile.from_height != 0
                            : x == in_x && y == in_y;
    const char* const from =
        tile.from + (static_cast<u64>(in_y) * tile.from_row +
                     static_cast<u64>(in_x) * tile.from_step) *
                        tile.bytes;
    if (inside) SWITCHYARD_NOTE(from, tile.bytes, kReads);
    SWITCHYARD_NOTE(to, tile.bytes, kWrites);
    for (u64 b = 0; b < tile.bytes; ++b) to[b] = inside ? from[b] : 0;
  }
}

SWITCHYARD_MEETS inline void CopyTile(const TileCopy& tile) {
  Share share = {0, 1};
  swy_simd(&share, &Divide, nullptr, "simdgroup_async_copy", false);
  CopyShare(tile, share);
}

}  // namespace switchyard_metal

SWITCHYARD_MEETS inline _simdgroup_event_t* __metal_simdgroup_async_copy_1d(
    ulong bytes, ulong, void* to, const void* from, ulong elements) {
  switchyard_metal::CopyTile({bytes, static_cast<char*>(to), elements, 1,
                              elements, 1, static_cast<const char*>(from),
                              elements, 1, elements, 1, 0, 0, false});
  return nullptr;
}
SWITCHYARD_MEETS inline _simdgroup_event_t* __metal_simdgroup_async_copy_2d(
    ulong bytes, ulong, void* to, ulong to_row, ulong to_step, ulong2 to_tile,
    const void* from, ulong from_row, ulong from_step, ulong2 from_tile,
    long2 offset, int clamp_mode) {
  switchyard_metal::CopyTile(
      {bytes, static_cast<char*>(to), to_row, to_step, to_tile[0], to_tile[1],
       static_cast<const char*>(from), from_row, from_step, from_tile[0],
       from_tile[1], offset[0], offset[1], clamp_mode == 1});
  return nullptr;
}
SWITCHYARD_MEETS inline void __metal_wait_simdgroup_events(
    int, _simdgroup_event_t**) {
  switchyard_metal::swy_simdgroup_barrier(switchyard_metal::kMemDevice |
                                          switchyard_metal::kMemThreadgroup);
}
SWITCHYARD_MEETS inline void __metal_wait_simdgroup_events(
    int, const _simdgroup_event_t**) {
  __metal_wait_simdgroup_events(0, static_cast<_simdgroup_event_t**>(nullptr));
}

#endif  // SWITCHYARD_DEVICE_SRC_SHIM_SWITCHYARD_ASYNC_COPY_H_
