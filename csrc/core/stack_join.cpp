#include "core/stack_join.hpp"

#include <cstring>

namespace cfg {

namespace {

constexpr int kProof = 3; // frames in a row, seen in both stacks

// faulthandler cuts long names and puts three dots behind them.
bool same_name(const char* maybe_cut, const char* whole) noexcept {
    const std::size_t length = std::strlen(maybe_cut);
    if (length > 3 && std::strcmp(maybe_cut + length - 3, "...") == 0 &&
        std::strncmp(maybe_cut, whole, length - 3) == 0) {
        return true;
    }
    return std::strcmp(maybe_cut, whole) == 0;
}

bool same_frame(const PythonFrame& one, const PythonFrame& other) noexcept {
    return one.line == other.line && same_name(one.function, other.function) && same_name(one.file, other.file);
}

// Frames in a row that agree, inwards from the outermost one of `cut` if that is frame `at` of `later`.
int agreement(const PythonStack& cut, const PythonStack& later, int at) noexcept {
    int agreed = 0;
    while (agreed < cut.count && agreed <= at &&
           same_frame(cut.frames[cut.count - 1 - agreed], later.frames[at - agreed])) {
        ++agreed;
    }
    return agreed;
}

} // namespace

void join_outer_frames(PythonStack& cut, const PythonStack& later) noexcept {
    const int until = later.gap_at > 0 ? later.gap_at : later.count;
    int matches = 0;
    int outermost_match = 0;
    for (int at = 0; at < until; ++at) {
        if (agreement(cut, later, at) >= kProof) {
            ++matches;
            outermost_match = at;
        }
    }
    if (matches == 0) {
        return;
    }
    int from = outermost_match + 1;
    // In a recursion many places fit: what lies outside of all of them is still certain, how much is between is not.
    int left_out = matches > 1 ? PythonStack::kUnknownGap : 0;
    const int room = PythonStack::kMaxFrames - cut.count;
    if (later.gap_at > 0 && (left_out != 0 || later.count - from > room)) {
        const bool known = left_out == 0 && later.gap >= 0;
        left_out = known ? later.gap_at - from + later.gap : PythonStack::kUnknownGap;
        from = later.gap_at;
    }
    if (later.count - from > room) {
        const int dropped = later.count - from - room;
        left_out = left_out < 0 ? left_out : left_out + dropped;
        from += dropped;
    }
    if (left_out != 0) {
        cut.gap_at = cut.count;
        cut.gap = left_out;
    } else if (later.gap_at > 0) {
        cut.gap_at = cut.count + later.gap_at - from;
        cut.gap = later.gap;
    }
    bool fits = true;
    for (int at = from; at < later.count && fits; ++at) {
        const PythonFrame& frame = later.frames[at];
        fits = cut.add(frame.file, std::strlen(frame.file), frame.function, std::strlen(frame.function), frame.line);
    }
    cut.complete = fits && later.complete;
    cut.reason = cut.complete ? nullptr : "outer frames not known";
}

} // namespace cfg
