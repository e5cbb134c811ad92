// faulthandler's text: `  File "train.py", line 12 in main`, everything but printable ASCII escaped.
#include <cstdint>
#include <cstring>

#include "core/python_dump.hpp"
#include "core/utf8.hpp"

namespace cfg {

namespace {

int hex_digit(char c) noexcept {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// The character an escape at `at` stands for, or -1 if it is none. faulthandler doesn't escape backslashes; but it
// never escapes what it could have printed, or in a longer form than needed, so most look-alikes can be told.
std::int64_t escaped(const char* at, const char* end, std::size_t& length) noexcept {
    struct Form {
        char letter;
        std::size_t digits;
        std::uint32_t least;
    };
    constexpr Form forms[] = {{'x', 2, 0}, {'u', 4, 0x100}, {'U', 8, 0x10000}};
    for (const Form& form : forms) {
        if (static_cast<std::size_t>(end - at) < 2 + form.digits || at[1] != form.letter) {
            continue;
        }
        std::uint32_t value = 0;
        for (std::size_t digit = 0; digit < form.digits; ++digit) {
            const int nibble = hex_digit(at[2 + digit]);
            if (nibble < 0) {
                return -1;
            }
            value = value << 4U | static_cast<std::uint32_t>(nibble);
        }
        const bool printable = value >= 0x20 && value < 0x7f;
        if (value < form.least || printable || value > 0x10ffff) {
            return -1;
        }
        length = 2 + form.digits;
        return value;
    }
    return -1;
}

// In place: no escape is shorter than the UTF-8 bytes of its character.
std::size_t decode(char* text, std::size_t length) noexcept {
    const char* from = text;
    const char* const end = text + length;
    char* to = text;
    while (from < end) {
        std::size_t taken = 1;
        const std::int64_t character = *from == '\\' ? escaped(from, end, taken) : -1;
        char bytes[kUtf8Longest];
        const std::size_t size = character < 0 ? 0 : put_utf8(bytes, static_cast<std::uint32_t>(character));
        if (size == 0) {
            *to++ = *from++;
            continue;
        }
        std::memcpy(to, bytes, size);
        to += size;
        from += taken;
    }
    return static_cast<std::size_t>(to - text);
}

bool starts_with(const char* text, std::size_t length, const char* with) noexcept {
    const std::size_t size = std::strlen(with);
    return length >= size && std::memcmp(text, with, size) == 0;
}

// The last one: a file name may contain anything, a function name seldom does.
char* find_last(char* text, std::size_t length, const char* what) noexcept {
    const std::size_t size = std::strlen(what);
    for (std::size_t at = length + 1 - (size < length ? size : length); at-- > 0;) {
        if (length - at >= size && std::memcmp(text + at, what, size) == 0) {
            return text + at;
        }
    }
    return nullptr;
}

} // namespace

DumpLine read_dump_line(PythonStack& stack, char* line, std::size_t length) noexcept {
    // "  ..." up to 3.13, "  <truncated rest of calls>" later
    if (starts_with(line, length, "  ...") || starts_with(line, length, "  <truncated")) {
        return DumpLine::cut;
    }
    constexpr const char kFile[] = "  File ";
    constexpr const char kLine[] = ", line ";
    constexpr const char kIn[] = " in ";
    char* const number = find_last(line, length, kLine);
    if (!starts_with(line, length, kFile) || number == nullptr) {
        return DumpLine::other;
    }
    char* const end = line + length;
    char* at = number + sizeof kLine - 1;
    int line_number = 0;
    for (; at < end && *at >= '0' && *at <= '9' && line_number < 100000000; ++at) {
        line_number = line_number * 10 + (*at - '0');
    }
    for (; at < end && *at == '?'; ++at) {
    }
    if (!starts_with(at, static_cast<std::size_t>(end - at), kIn)) {
        return DumpLine::other;
    }
    char* const function = at + sizeof kIn - 1;
    char* file = line + sizeof kFile - 1;
    char* file_end = number;
    if (file_end - file >= 2 && *file == '"' && file_end[-1] == '"') {
        ++file;
        --file_end;
    }
    const std::size_t function_length = decode(function, static_cast<std::size_t>(end - function));
    const std::size_t file_length = decode(file, static_cast<std::size_t>(file_end - file));
    return stack.add(file, file_length, function, function_length, line_number) ? DumpLine::frame : DumpLine::full;
}

} // namespace cfg
