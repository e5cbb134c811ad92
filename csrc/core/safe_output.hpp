// Text built in a caller's buffer and written with write(2): no allocation, no locale, no stdio. Async-signal-safe.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cfg {

// Appends to a fixed buffer; what doesn't fit is cut off and `truncated` says so. Always NUL-terminated.
class Text {
  public:
    Text(char* buffer, std::size_t capacity) noexcept;
    Text& put(const char* string) noexcept;
    Text& put(const char* bytes, std::size_t length) noexcept;
    Text& decimal(std::int64_t number) noexcept;
    Text& hex(std::uint64_t number) noexcept;
    const char* data() const noexcept { return buffer_; }
    std::size_t size() const noexcept { return length_; }
    bool truncated() const noexcept { return truncated_; }

  private:
    char* buffer_;
    std::size_t capacity_;
    std::size_t length_ = 0;
    bool truncated_ = false;
};

// One write(2), repeated only if interrupted before it wrote anything: a report must not be torn by others' output.
// Keeps errno. False if not everything was written.
bool write_once(int descriptor, const char* bytes, std::size_t length) noexcept;

// Copies at most capacity-1 bytes, never in the middle of a UTF-8 character, and terminates.
void copy_text(char* to, std::size_t capacity, const char* from, std::size_t length) noexcept;

} // namespace cfg
