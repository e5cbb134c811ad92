// UTF-8 as the guard's texts use it: file names keep the bytes they have on disk.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cfg {

constexpr std::size_t kUtf8Longest = 4;

// Writes one character and returns how many bytes it took; 0 for a lone surrogate, which has no UTF-8 form. The 128
// that Python uses for bytes of a file name that aren't UTF-8 (surrogateescape) become those bytes again.
inline std::size_t put_utf8(char* to, std::uint32_t character) noexcept {
    const auto byte = [](std::uint32_t value) { return static_cast<char>(static_cast<unsigned char>(value)); };
    if (character < 0x80) {
        to[0] = byte(character);
        return 1;
    }
    if (character < 0x800) {
        to[0] = byte(0xc0 | character >> 6U);
        to[1] = byte(0x80 | (character & 0x3f));
        return 2;
    }
    if (character >= 0xdc80 && character <= 0xdcff) {
        to[0] = byte(character - 0xdc00);
        return 1;
    }
    if (character >= 0xd800 && character <= 0xdfff) {
        return 0;
    }
    if (character < 0x10000) {
        to[0] = byte(0xe0 | character >> 12U);
        to[1] = byte(0x80 | (character >> 6U & 0x3f));
        to[2] = byte(0x80 | (character & 0x3f));
        return 3;
    }
    to[0] = byte(0xf0 | character >> 18U);
    to[1] = byte(0x80 | (character >> 12U & 0x3f));
    to[2] = byte(0x80 | (character >> 6U & 0x3f));
    to[3] = byte(0x80 | (character & 0x3f));
    return 4;
}

} // namespace cfg
