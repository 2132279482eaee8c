// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

#include "switchyard/device/foundation.h"

#include <vector>

namespace switchyard::device {
namespace {

// Returns the objects in this thread's autorelease pools. The objects of the
// innermost pool are at the end.
std::vector<std::shared_ptr<const void>>& Pooled() {
  thread_local std::vector<std::shared_ptr<const void>> pooled;
  return pooled;
}

}  // namespace

void Object::Keep(std::shared_ptr<const void> self) noexcept {
  const std::lock_guard<std::mutex> lock(references_mutex_);
  if (references_++ == 0) self_ = std::move(self);
}

void Object::release() noexcept {
  // `last` is declared before the lock, so that the object is destroyed after
  // unlocking.
  std::shared_ptr<const void> last;
  const std::lock_guard<std::mutex> lock(references_mutex_);
  if (references_ != 0 && --references_ == 0) last = std::move(self_);
}

size_t Object::retainCount() const noexcept {
  const std::lock_guard<std::mutex> lock(references_mutex_);
  return references_;
}

void Object::Pool(std::shared_ptr<const void> object) noexcept {
  try {
    Pooled().push_back(std::move(object));
  } catch (...) {
    // If there is no memory for the pool, one reference is leaked, because
    // the object must stay alive.
    new (std::nothrow) std::shared_ptr<const void>(std::move(object));
  }
}

AutoreleasePool* AutoreleasePool::alloc() {
  return new AutoreleasePool(Pooled().size());
}

void AutoreleasePool::drain() noexcept {
  std::vector<std::shared_ptr<const void>>& pooled = Pooled();
  while (pooled.size() > begin_) {
    // Remove the object first, because its destructor may add to the pool.
    const std::shared_ptr<const void> last = std::move(pooled.back());
    pooled.pop_back();
  }
}

void AutoreleasePool::release() noexcept {
  drain();
  delete this;
}

Autoreleased<String> String::string(const char* text, StringEncoding) noexcept {
  try {
    return std::shared_ptr<String>(new String(text == nullptr ? "" : text));
  } catch (...) {
    return nullptr;
  }
}

Autoreleased<Error> MakeError(const char* text) noexcept {
  try {
    return std::shared_ptr<Error>(new Error(text));
  } catch (...) {
    return nullptr;
  }
}

namespace host_internal {

void ErrorOut::Set(const char* what) const noexcept {
  if (object_ != nullptr) *object_ = MakeError(what);
  if (text_ == nullptr) return;
  try {
    *text_ = what;
  } catch (...) {
  }
}

void Label::Set(const Text& text) noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  try {
    text_ = text.c_str();
  } catch (...) {
    text_.clear();
  }
}

std::string Label::Get() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return text_;
}

}  // namespace host_internal
}  // namespace switchyard::device
