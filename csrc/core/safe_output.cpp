#include "core/safe_output.hpp"

#include <cerrno>
#include <cstring>
#include <unistd.h>

namespace cfg {

namespace {
// How many of `length` bytes can be kept without cutting a UTF-8 character in two.
std::size_t whole_characters(const char* bytes, std::size_t length, std::size_t room) noexcept {
    if (length <= room) {
        return length;
    }
    std::size_t kept = room;
    while (kept > 0 && (static_cast<unsigned char>(bytes[kept]) & 0xC0U) == 0x80U) {
        --kept;
    }
    return kept;
}
} // namespace

Text::Text(char* buffer, std::size_t capacity) noexcept : buffer_(buffer), capacity_(capacity) {
    buffer_[0] = '\0';
}

Text& Text::put(const char* string) noexcept {
    return string == nullptr ? *this : put(string, std::strlen(string));
}

Text& Text::put(const char* bytes, std::size_t length) noexcept {
    const std::size_t kept = whole_characters(bytes, length, capacity_ - 1 - length_);
    truncated_ = truncated_ || kept < length;
    std::memcpy(buffer_ + length_, bytes, kept);
    length_ += kept;
    buffer_[length_] = '\0';
    return *this;
}

Text& Text::decimal(std::int64_t number) noexcept {
    char digits[24];
    std::size_t at = sizeof digits;
    // Negated as unsigned: the lowest number has no positive counterpart.
    std::uint64_t rest = number < 0 ? 0U - static_cast<std::uint64_t>(number) : static_cast<std::uint64_t>(number);
    do {
        digits[--at] = static_cast<char>('0' + rest % 10U);
        rest /= 10U;
    } while (rest != 0U);
    if (number < 0) {
        digits[--at] = '-';
    }
    return put(digits + at, sizeof digits - at);
}

Text& Text::hex(std::uint64_t number) noexcept {
    char digits[16];
    std::size_t at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[number & 15U];
        number >>= 4U;
    } while (number != 0U);
    return put("0x").put(digits + at, sizeof digits - at);
}

bool write_once(int descriptor, const char* bytes, std::size_t length) noexcept {
    const int saved = errno;
    ssize_t written;
    do {
        written = write(descriptor, bytes, length);
    } while (written < 0 && errno == EINTR);
    errno = saved;
    return written == static_cast<ssize_t>(length);
}

void copy_text(char* to, std::size_t capacity, const char* from, std::size_t length) noexcept {
    const std::size_t kept = whole_characters(from, length, capacity - 1);
    std::memcpy(to, from, kept);
    to[kept] = '\0';
}

} // namespace cfg
