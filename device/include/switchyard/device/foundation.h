// Copyright 2026 The Switchyard Authors
// SPDX-License-Identifier: Apache-2.0

// Defines who owns objects. There are two ways:
//
// * A std::shared_ptr keeps its object alive, and so does a Ref, which
//   derives from std::shared_ptr.
// * Raw pointers work as in metal-cpp (`namespace NS = switchyard::device;`).
//   The caller owns the result of new...() and alloc() until it calls
//   release(). The thread's AutoreleasePool owns the result of any other call
//   (commandBuffer(), ...).
//
//   auto buffer = device->newBuffer(64);          // as long as the variable
//   MTL::Buffer* buffer = device->newBuffer(64);  // until buffer->release()

#ifndef SWITCHYARD_DEVICE_FOUNDATION_H_
#define SWITCHYARD_DEVICE_FOUNDATION_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "switchyard/language.h"

namespace switchyard::device {

using UInteger = size_t;
using Integer = ptrdiff_t;

// The `length` indices that start at `location`.
struct Range {
  size_t location = 0;
  size_t length = 0;

  constexpr Range() noexcept = default;
  constexpr Range(size_t loc, size_t len) noexcept
      : location(loc), length(len) {}
  static constexpr Range Make(size_t loc, size_t len) noexcept {
    return Range(loc, len);
  }
};

template <class T, bool kAutoreleased>
class Ref;

// The base of all objects. A shared_ptr counts references to an object, and
// so do retain() and release().
class Object : public std::enable_shared_from_this<Object> {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  // Undoes a retain(), or gives up the reference of a raw pointer from
  // new...(). Without such a reference it does nothing, because a shared_ptr
  // then owns the object.
  void release() noexcept;
  // Returns how many calls of release() would have an effect.
  size_t retainCount() const noexcept;

 protected:
  Object() = default;
  ~Object() = default;

 private:
  template <class T, class Base>
  friend class Referencing;
  template <class T, bool kAutoreleased>
  friend class Ref;
  friend class CommandBuffer;

  // Counts one more reference. While the count is not 0, the object holds
  // `self`, which keeps it alive.
  void Keep(std::shared_ptr<const void> self) noexcept;
  // Gives `object` to the innermost AutoreleasePool of the thread.
  static void Pool(std::shared_ptr<const void> object) noexcept;

  mutable std::mutex references_mutex_;
  size_t references_ = 0;
  std::shared_ptr<const void> self_;  // set while references_ is not 0
};

// Adds retain() and autorelease() to an object. Both return a T*, to allow
// chained calls.
template <class T, class Base = Object>
class Referencing : public Base {
 public:
  using Base::Base;
  // Counts one more reference, which release() gives up.
  T* retain() noexcept {
    this->Keep(this->shared_from_this());
    return static_cast<T*>(this);
  }
  // Makes the thread's AutoreleasePool call release() later.
  T* autorelease() noexcept {
    Object::Pool(this->shared_from_this());
    this->release();
    return static_cast<T*>(this);
  }
};

// A shared_ptr that converts to a raw pointer.
template <class T, bool kAutoreleased = false>
class Ref : public std::shared_ptr<T> {
 public:
  Ref() noexcept = default;
  Ref(std::nullptr_t) noexcept {}          // NOLINT(runtime/explicit)
  Ref(std::shared_ptr<T> object) noexcept  // NOLINT(runtime/explicit)
      : std::shared_ptr<T>(std::move(object)) {}

  // A named variable converts to a raw pointer that is valid as long as the
  // variable keeps the object.
  operator T*() const& noexcept { return this->get(); }  // NOLINT
  // A temporary, such as the result of a call, converts to a raw pointer that
  // the caller, or the pool, owns.
  operator T*() && noexcept {  // NOLINT(runtime/explicit)
    T* const object = this->get();
    if (object == nullptr) return nullptr;
    if constexpr (kAutoreleased) {
      Object::Pool(*this);
    } else {
      object->Keep(*this);
    }
    return object;
  }
  explicit operator bool() const& noexcept { return this->get() != nullptr; }
  explicit operator bool() && noexcept { return this->get() != nullptr; }
};

// The result of a call. If it converts to a raw pointer, the pool owns the
// object.
template <class T>
using Autoreleased = Ref<T, true>;

namespace host_internal {

// A parameter that takes an object as a shared_ptr, a raw pointer or null.
template <class T>
class Arg {
 public:
  Arg(const T* object) noexcept : object_(object) {}  // NOLINT
  template <class U>
  Arg(const std::shared_ptr<U>& object) noexcept  // NOLINT(runtime/explicit)
      : object_(object.get()) {}

  const T* get() const noexcept { return object_; }

 private:
  const T* object_;
};

}  // namespace host_internal

namespace host_internal {

// A parameter that takes a settings object as a shared_ptr, a raw pointer or
// a reference; {} and null mean the defaults.
template <class T>
class Settings {
 public:
  Settings() noexcept = default;
  Settings(const T* object) noexcept : object_(object) {}   // NOLINT
  Settings(const T& object) noexcept : object_(&object) {}  // NOLINT
  template <class U>
  Settings(const std::shared_ptr<U>& object) noexcept  // NOLINT
      : object_(object.get()) {}

  const T* get() const noexcept { return object_; }

 private:
  const T* object_ = nullptr;
};

}  // namespace host_internal

// NS::SharedPtr is a shared_ptr. TransferPtr() makes a SharedPtr from a raw
// pointer that the caller owns, and takes over the caller's reference.
// RetainPtr() makes a SharedPtr and keeps the caller's reference.
template <class T>
using SharedPtr = std::shared_ptr<T>;
template <class T>
std::shared_ptr<T> TransferPtr(T* object) {
  if (object == nullptr) return nullptr;
  return std::shared_ptr<T>(object, [](T* owned) { owned->release(); });
}
template <class T, bool kAutoreleased>
std::shared_ptr<T> TransferPtr(Ref<T, kAutoreleased> object) {
  return std::shared_ptr<T>(std::move(object));
}
template <class T>
std::shared_ptr<T> RetainPtr(T* object) {
  return TransferPtr(object == nullptr ? nullptr : object->retain());
}
template <class T, bool kAutoreleased>
std::shared_ptr<T> RetainPtr(const Ref<T, kAutoreleased>& object) {
  return object;
}

// When a pool is released or drained, it releases the objects that its thread
// got as raw pointers since the pool was made. Without a pool, such objects
// live until the thread ends. Release a pool on the thread that made it, and
// the innermost pool first.
class AutoreleasePool {
 public:
  static AutoreleasePool* alloc();
  AutoreleasePool* init() noexcept { return this; }
  void drain() noexcept;
  void release() noexcept;

 private:
  explicit AutoreleasePool(size_t begin) noexcept : begin_(begin) {}

  const size_t begin_;  // index in the thread's list of objects
};

enum StringEncoding : uint32_t {
  ASCIIStringEncoding = 1,
  UTF8StringEncoding = 4,
};

// A text, for labels and names. The encoding is ignored: the bytes are kept
// as they are.
class String : public Referencing<String> {
 public:
  static Autoreleased<String> string(const char* text,
                                     StringEncoding encoding) noexcept;
  const char* utf8String() const noexcept { return text_.c_str(); }
  const char* cString(StringEncoding) const noexcept { return utf8String(); }
  size_t length() const noexcept { return text_.size(); }

 private:
  friend class Error;
  explicit String(const char* text) : text_(text) {}
  const std::string text_;
};

// The reason why a call failed, for callers that pass an Error**.
class Error : public Referencing<Error> {
 public:
  // The error owns the returned text.
  String* localizedDescription() const noexcept { return text_.get(); }
  String* description() const noexcept { return text_.get(); }
  Integer code() const noexcept { return 1; }  // the same for every error

 private:
  friend Autoreleased<Error> MakeError(const char* text) noexcept;
  explicit Error(const char* text) : text_(new String(text)) {}
  const std::shared_ptr<String> text_;
};
// Returns nullptr if memory runs out.
Autoreleased<Error> MakeError(const char* text) noexcept;

namespace host_internal {

// A parameter that takes a text as a C string, a std::string or a String.
// Null is an empty text.
class Text {
 public:
  Text(const char* text)  // NOLINT(runtime/explicit)
      : text_(text) {}
  Text(const std::string& text)  // NOLINT(runtime/explicit)
      : text_(text.c_str()) {}
  Text(const String* text)  // NOLINT(runtime/explicit)
      : text_(text == nullptr ? nullptr : text->utf8String()) {}
  // Accepts both a variable and the result of a call.
  template <bool kAutoreleased>
  Text(const Ref<String, kAutoreleased>& text)  // NOLINT(runtime/explicit)
      : Text(static_cast<const String*>(text.get())) {}
  Text(std::nullptr_t) : text_(nullptr) {}  // NOLINT(runtime/explicit)

  bool is_null() const { return text_ == nullptr; }
  const char* c_str() const { return text_ == nullptr ? "" : text_; }

 private:
  const char* text_;
};

// A parameter for the place where a failing call stores its reason: a
// std::string* or metal-cpp's NS::Error**. Both may be null.
class ErrorOut {
 public:
  ErrorOut(std::nullptr_t) noexcept {}                    // NOLINT
  ErrorOut(std::string* text) noexcept : text_(text) {}   // NOLINT
  ErrorOut(Error** object) noexcept : object_(object) {}  // NOLINT
  void Set(const char* what) const noexcept;

 private:
  std::string* text_ = nullptr;
  Error** object_ = nullptr;
};

// An object's label, which errors show. Any thread may use it.
class Label {
 public:
  void Set(const Text& text) noexcept;
  std::string Get() const;

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace host_internal
}  // namespace switchyard::device

#endif  // SWITCHYARD_DEVICE_FOUNDATION_H_
