#include "core/touch_report.hpp"

#include <cstring>

#include "core/safe_output.hpp"

namespace cfg {

namespace {

constexpr std::size_t kWidestColumn = 64; // a longer place moves nobody else's detail
constexpr std::size_t kLongestLine = ForkSite::kLine + kWidestColumn + 16;
static_assert(512 + 4 * kLongestLine < kReportSize, "the report could be cut in a line");

struct Line {
    const char* label;
    const char* place;
    std::size_t place_length;
    const char* detail; // from its parenthesis on; "" for none
};

Line split(const char* label, const char* text) noexcept {
    const char* const detail = std::strstr(text, "  (");
    if (detail == nullptr) {
        return Line{label, text, std::strlen(text), ""};
    }
    return Line{label, text, static_cast<std::size_t>(detail - text), detail + 2};
}

// Characters, not bytes: what a terminal shows for most scripts.
std::size_t width(const Line& line) noexcept {
    std::size_t characters = 0;
    for (std::size_t at = 0; at < line.place_length; ++at) {
        characters += (static_cast<unsigned char>(line.place[at]) & 0xC0U) != 0x80U;
    }
    return characters;
}

void put_line(Text& report, const Line& line, std::size_t column) noexcept {
    char buffer[kLongestLine];
    Text content(buffer, sizeof buffer);
    content.put(line.place, line.place_length);
    if (line.detail[0] != '\0') {
        for (std::size_t at = width(line); at < column; ++at) {
            content.put(" ");
        }
        content.put("  ").put(line.detail);
    }
    report.put(line.label).put(content.data(), content.size()).put("\n");
}

} // namespace

std::size_t format_touch_report(char (&report)[kReportSize], const TouchFacts& facts) noexcept {
    const Line lines[] = {split("  used:    ", facts.used), split("  forked:  ", facts.forked),
                          split("  woken:   ", facts.woken), split("  do:      ", facts.advice)};
    std::size_t column = 0;
    for (const Line& line : lines) {
        const std::size_t wide = line.detail[0] == '\0' ? 0 : width(line);
        column = wide > column && wide <= kWidestColumn ? wide : column;
    }
    Text text(report, sizeof report);
    text.put("cuda_fork_guard[").decimal(facts.pid).put("]: [CFG102] ");
    text.put(facts.inherited
                 ? "CUDA used in a process that was forked after CUDA was initialized; it cannot work there."
                 : "CUDA used in a process that was verified as cpu-only.");
    text.put("\n");
    for (const Line& line : lines) {
        if (line.place_length > 0) {
            put_line(text, line, column);
        }
    }
    return text.size();
}

} // namespace cfg
